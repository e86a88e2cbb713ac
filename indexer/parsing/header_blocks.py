"""Statements at the head of a document: header blocks as in mail (RFC 2822) and YAML front matter."""

import re
from collections.abc import Iterator

import yaml

MAX_YAML_CHARACTERS = 64 * 1024
MAX_FIELDS = 500

Fields = list[tuple[str, str]]

_HEADER = re.compile(r"([A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*):(?:[ \t]+(.*))?")
_NOT_NAME = re.compile(r"[^\w.]+")


def field_name(name: str) -> str:
    """Lower case with `_` for blanks and dashes: `Superseded-By` becomes `superseded_by`."""
    return _NOT_NAME.sub("_", name.strip().lower()).strip("_")


def split_header_block(text: str) -> tuple[Fields, str]:
    """The block of `Name: value` lines a text begins with, names as written, and the text behind it.

    A block has two or more such lines, continued by indented lines, and ends at an empty line. Without one, or when
    anything else stands in it, there are no fields and the whole text is given back.
    """
    start = len(text) - len(text.lstrip("\n"))
    fields: Fields = []
    at = start
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        at = end + 1
        if not line.strip():
            break
        if fields and line[0] in " \t":
            name, value = fields[-1]
            fields[-1] = (name, f"{value} {line.strip()}".strip())
            continue
        match = _HEADER.fullmatch(line)
        if match is None or len(fields) >= MAX_FIELDS:
            return [], text
        fields.append((match[1], (match[2] or "").strip()))
    if len(fields) < 2:
        return [], text
    return [field for field in fields if field[1]], text[at:]


def named(fields: Fields) -> Fields:
    """The fields under normalised names."""
    return [(field_name(name), value) for name, value in fields]


def read_front_matter(text: str) -> Fields:
    """The statements of YAML front matter, every value as it is written, a list as several, a mapping by dotted names.

    Aliases are not followed (they can stand for gigabytes). What is not plain YAML is read line by line.
    """
    if len(text) <= MAX_YAML_CHARACTERS:
        try:
            # A subclass of the loader that makes nothing but strings, lists and mappings.
            return list(_flattened("", yaml.load(text, Loader=_PlainLoader)))[:MAX_FIELDS]  # noqa: S506
        except (yaml.YAMLError, ValueError, RecursionError):
            pass
    pairs = (line.partition(":") for line in text.split("\n", MAX_FIELDS)[:MAX_FIELDS])
    return [(field_name(name), value.strip(" \t\"'")) for name, colon, value in pairs if colon and value.strip()]


def first_value(fields: Fields, name: str) -> str | None:
    return next((value for known, value in fields if known == name), None)


class _PlainLoader(yaml.BaseLoader):
    """Scalars stay the strings that were written; aliases are refused."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias in front matter")
        return super().compose_node(parent, index)


def _flattened(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for part, inner in value.items():
            yield from _flattened(f"{name}.{field_name(str(part))}" if name else field_name(str(part)), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _flattened(name, inner)
    elif isinstance(value, str) and name and value.strip() not in ("", "~", "null"):
        yield name, " ".join(value.split())
