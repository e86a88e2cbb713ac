"""Statements at the head of a document: header blocks as in mail (RFC 2822), YAML front matter, lists of Markdown."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

MAX_YAML_CHARACTERS = 64 * 1024
MAX_FIELDS = 500
MAX_LIST_CHARACTERS = 16 * 1024
MAX_PROBLEM_CHARACTERS = 200

Fields = list[tuple[str, str]]

_HEADER = re.compile(r"([A-Z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*):(?:[ \t]+(.*))?")
_LISTED = re.compile(
    r"(?:[-*+][ \t]+(?:\*\*|__)?|\*\*|__)(?P<name>[A-Za-z][\w-]*(?: [\w-]+){0,3})(?:(?:\*\*|__)?:|:(?:\*\*|__))[ \t]+"
    r"(?P<value>\S.*?)(?:  |\\)?"
)
_HEADING = re.compile(r"#{1,6}[ \t]|[^\n]+\n(?:=+|-+)[ \t]*(?:\n|$)")
_MARKUP = re.compile(r"!?\[([^][]*)\]\([^()]*\)|[*`]+")
# One of these is what tells a list of statements about a document from any other list, such as one of features.
_OF_DOCUMENTS = frozenset({
    "approved_by", "approver", "author", "authors", "created", "creator", "date", "decided", "decider", "deciders",
    "decision_date", "editor", "editors", "last_modified", "last_updated", "modified", "owner", "owners", "published",
    "reviewed", "reviewer", "reviewers", "revised", "state", "status", "superseded_by", "supersedes", "type", "updated",
    "version",
})  # fmt: skip
_NOT_NAME = re.compile(r"[^\w.]+")
_STATES_BY_NAME = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[\w.-]+[ \t]*:(?=\s|$)")  # blank lines and comments aside


class FrontMatter(NamedTuple):
    """What front matter states, and what its author should know of how it was read; `is_text` where it states nothing
    and is part of the document's text."""

    fields: Fields
    notes: tuple[str, ...] = ()
    is_text: bool = False


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


def listed_header(text: str) -> Fields:
    """What the list or the bold lines state that a Markdown text begins with, at once or behind its first heading:
    `- Status: Accepted`, `**Date:** 2024-01-02`; values without markup. Nothing where a line of the list states nothing
    by name, or where none of the names is one that documents have in their headers."""
    fields: Fields = []
    lines = iter(_behind_heading(text.lstrip("\n"))[:MAX_LIST_CHARACTERS].split("\n"))
    for line in lines:
        match = _LISTED.fullmatch(line.rstrip("\r"))
        if match is not None and len(fields) < MAX_FIELDS:
            fields.append((field_name(match["name"]), _plain(match["value"])))
        elif line.startswith(("- ", "* ", "+ ")):
            return []
        elif fields and line[:1] in (" ", "\t") and line.strip():
            if line.lstrip().startswith(("- ", "* ", "+ ")):
                continue  # a list within it
            name, value = fields[-1]
            fields[-1] = (name, f"{value} {_plain(line)}")
        elif line.strip():
            break
    return fields if any(name in _OF_DOCUMENTS for name, _ in fields) else []


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\1", text).strip()


def _behind_heading(text: str) -> str:
    heading = _HEADING.match(text)
    if heading is None:
        return text
    return text[heading.end() :] if "\n" in heading[0] else text.partition("\n")[2]


def named(fields: Fields) -> Fields:
    """The fields under normalised names."""
    return [(field_name(name), value) for name, value in fields]


def read_front_matter(text: str) -> FrontMatter:
    """The statements of YAML front matter, every value as it is written, a list as several, a mapping by dotted names.
    YAML that states nothing by name is text between two lines of dashes.

    Aliases are not followed (they can stand for gigabytes). What is not plain YAML is read line by line, with a note,
    or is text as well where it does not begin with a `name:`.
    """
    if len(text) > MAX_YAML_CHARACTERS:
        why = f"has {len(text):,} characters, more than {MAX_YAML_CHARACTERS:,}"
    else:
        try:
            # A subclass of the loader that makes nothing but strings, lists and mappings.
            read = yaml.load(text, Loader=_PlainLoader)  # noqa: S506
            if read is None or isinstance(read, dict):
                return FrontMatter(list(_flattened("", read))[:MAX_FIELDS])
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            why = f"is no plain YAML ({_problem(error)})"
        else:
            return FrontMatter([], is_text=True)
    if not _STATES_BY_NAME.match(text):
        told = (
            f"What stands between the first two lines of dashes {why}, and begins with no `name:`: it was read as text."
        )
        return FrontMatter([], (told,), is_text=True)
    pairs = (line.partition(":") for line in text.split("\n", MAX_FIELDS)[:MAX_FIELDS])
    fields = [(field_name(name), value.strip(" \t\"'")) for name, colon, value in pairs if colon and value.strip()]
    return FrontMatter(fields, (f"The front matter {why}: of its lines only `name: value` was read.",))


def _problem(error: Exception) -> str:
    """What is wrong, and in which line of the document; the first one opens the front matter."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 2}: {error.problem}"[:MAX_PROBLEM_CHARACTERS]
    return str(error)[:MAX_PROBLEM_CHARACTERS] or type(error).__name__


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
