"""Metadata at the start of a document: front matter (YAML, TOML, JSON), header blocks as in mail (RFC 2822), Markdown
lists."""

import json
import re
import tomllib
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

import yaml

MAX_CHARACTERS = 64 * 1024
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
# One of these distinguishes a list of metadata from any other list, such as one of features.
_OF_DOCUMENTS = frozenset({
    "approved_by", "approver", "author", "authors", "created", "creator", "date", "decided", "decider", "deciders",
    "decision_date", "editor", "editors", "last_modified", "last_updated", "modified", "owner", "owners", "published",
    "reviewed", "reviewer", "reviewers", "revised", "state", "status", "superseded_by", "supersedes", "type", "updated",
    "version",
})  # fmt: skip
_FRONT_MATTER = re.compile(
    r"(?P<line>-{3,}|\+{3}|;{3})[ \t]*(?P<language>yaml|toml|json)?[ \t]*\n(?P<text>.*?)"
    r"^(?: {0,3}(?P=line)-*|\.\.\.)[ \t]*$\n?",
    re.MULTILINE | re.DOTALL,
)
_UNCLOSED = re.compile(r"(-{3,}|\+{3}|;{3})[ \t]*\n(?:[\w-]+(?::[ \t\n]|[ \t]*=)|\{)")
_JSON_OBJECT = re.compile(r"\{\s*\"[^\"\n]*\"\s*:")
_NOT_NAME = re.compile(r"[^\w.]+")
_STARTS_WITH_NAME = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[\w.-]+[ \t]*:(?=\s|$)")  # blank lines and comments aside


class FrontMatter(NamedTuple):
    """The fields of front matter and notes for the author; `is_text`: it is none, but part of the document's text."""

    fields: Fields
    notes: tuple[str, ...] = ()
    is_text: bool = False


def field_name(name: str) -> str:
    """Normalised: `Superseded-By` becomes `superseded_by`."""
    return _NOT_NAME.sub("_", name.strip().lower()).strip("_")


def split_header_block(text: str) -> tuple[Fields, str]:
    """(fields of the header block a text begins with, names as written; the text after it).

    A block has two or more lines `Name: value`, continued by indented lines, and ends at an empty line. Otherwise there
    are no fields, and the text is returned whole.
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


def list_fields(text: str) -> Fields:
    """The fields in the list or bold lines at the start of a Markdown text, or right after its first heading:
    `- Status: Accepted`, `**Date:** 2024-01-02`; values without markup.

    None if an item of the list is not a field, or no name is one usual in headers of documents.
    """
    fields: Fields = []
    for line in _without_first_heading(text.lstrip("\n"))[:MAX_LIST_CHARACTERS].split("\n"):
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


def _without_first_heading(text: str) -> str:
    heading = _HEADING.match(text)
    if heading is None:
        return text
    return text[heading.end() :] if "\n" in heading[0] else text.partition("\n")[2]


def as_front_matter(fields: Mapping[str, str]) -> list[str]:
    """The lines of YAML front matter that state these fields; none for none."""
    stated = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items()]
    return ["---", *stated, "---"] if stated else []


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """The front matter that a text begins with, and the text after it; all of the text where there is none.

    YAML between lines of dashes, TOML between `+++`, JSON between `;;;` or as an object that the text begins with.
    """
    if match := _FRONT_MATTER.match(text):
        language = match["language"] or {"+": "toml", ";": "json"}.get(match["line"][0], "yaml")
        between = match["text"].removesuffix("\n")
        read = parse_front_matter(between) if language == "yaml" else _read_object(between, language)
        return read, text if read.is_text else text[match.end() :]
    if match := _UNCLOSED.match(text):
        note = f"The document begins as front matter does, but no line `{match[1]}` ends it: it was read as text."
        return FrontMatter([], (note,), is_text=True), text
    if _JSON_OBJECT.match(text):
        try:
            end = json.JSONDecoder().raw_decode(text[:MAX_CHARACTERS])[1]
        except (ValueError, RecursionError):
            return _read_object(text, "json"), text
        if text[end:].lstrip(" \t").startswith("\n") and text[end:].strip():
            return _read_object(text[:end], "json"), text[end:]
    return FrontMatter([]), text


def _read_object(text: str, language: str) -> FrontMatter:
    """The fields of TOML or JSON; what cannot be read is text, with a note."""
    load = tomllib.loads if language == "toml" else json.loads
    try:
        read = load(text, parse_float=str) if len(text) <= MAX_CHARACTERS else None
        if isinstance(read, dict):
            return FrontMatter(list(_flattened("", read))[:MAX_FIELDS])
        why = f"no object of up to {MAX_CHARACTERS:,} characters"
    except (ValueError, RecursionError) as error:
        why = _problem(error)
    return FrontMatter([], (f"The front matter is not {language.upper()} ({why}): it was read as text.",), is_text=True)


def parse_front_matter(text: str) -> FrontMatter:
    """The fields of YAML front matter: values as written, several for a list, dotted names for a mapping.

    YAML that is not a mapping is text. Aliases are refused: they can expand to gigabytes. Invalid YAML is read line by
    line, with a note, or is text if it does not begin with a `name:`.
    """
    if len(text) > MAX_CHARACTERS:
        why = f"has {len(text):,} characters, more than {MAX_CHARACTERS:,}"
    else:
        try:
            # A subclass of the loader that makes nothing but strings, lists and mappings.
            read = yaml.load(text, Loader=_PlainLoader)  # noqa: S506
            if read is None or isinstance(read, dict):
                return FrontMatter(list(_flattened("", read))[:MAX_FIELDS])
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            why = f"is not plain YAML ({_problem(error)})"
        else:
            return FrontMatter([], is_text=True)
    if not _STARTS_WITH_NAME.match(text):
        note = f"What is between the first two lines of dashes {why}, and begins with no `name:`: it was read as text."
        return FrontMatter([], (note,), is_text=True)
    pairs = (line.partition(":") for line in text.split("\n", MAX_FIELDS)[:MAX_FIELDS])
    fields = [(field_name(name), value.strip(" \t\"'")) for name, colon, value in pairs if colon and value.strip()]
    return FrontMatter(fields, (f"The front matter {why}: of its lines only `name: value` was read.",))


def _problem(error: Exception) -> str:
    """What is wrong, and in which line of the document, whose first line opens the front matter."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 2}: {error.problem}"[:MAX_PROBLEM_CHARACTERS]
    return str(error)[:MAX_PROBLEM_CHARACTERS] or type(error).__name__


def first_value(fields: Fields, name: str) -> str | None:
    return next((value for known, value in fields if known == name), None)


class _PlainLoader(yaml.BaseLoader):
    """Scalars stay strings as written, a name that is there twice has all its values; aliases are refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = True) -> dict[Hashable, object]:
        values: dict[Hashable, object] = {}
        for key, value in self.construct_pairs(node, deep=deep or True):
            values[str(key)] = [values[str(key)], value] if str(key) in values else value
        return values

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
    elif value is not None and name:
        written = str(value).lower() if isinstance(value, bool) else str(value)
        if written.strip() not in ("", "~", "null"):
            yield name, " ".join(written.split())
