"""A document's title, and the names it is about: title, shorter forms of it, identifiers and aliases."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from indexer.documents import AboutName, ParsedDocument
from indexer.extraction.lexicon import HONORIFICS, STOP_WORDS
from indexer.extraction.names import name_of
from indexer.extraction.series import KNOWN_SERIES, series_of_document, series_of_path, stated_series
from indexer.parsing.document_builder import without_invisible
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, bare_name
from schemas.limits import shortened_title

WHOLE = 1.0
WITHOUT_ARTICLE = 0.9
WITHOUT_HONORIFIC = 0.8
FIRST_PART = 0.7

MAX_ALIASES = 32
MAX_TITLE_CHARACTERS = 200
_PART_ENDS = (": ", " – ", " — ", " - ")
_ALIAS_FIELDS = ("aliases", "alias")


def about_names(
    title: str, parsed: ParsedDocument, key: DocumentKey, metadata: Mapping[str, Any] | None = None
) -> tuple[AboutName, ...]:
    """The names, heaviest first, then by name. The same name from two rules keeps the greater weight.

    Weights: 1 for the title, the title without its bracketed ending, identifiers and stated aliases; .9 without an
    article in front; .8 without an honorific in front; .7 for the part before a comma, colon or dash.
    """
    found: dict[str, AboutName] = {}
    for written, weight in _surfaces(title, parsed, key, metadata or {}):
        surface = " ".join(written.split())[:MAX_TITLE_CHARACTERS]
        name = bare_name(surface)
        if name and (name not in found or found[name].weight < weight):
            found[name] = AboutName(name, surface, weight)
    return tuple(sorted(found.values(), key=lambda about: (-about.weight, about.name)))


def _surfaces(
    title: str, parsed: ParsedDocument, key: DocumentKey, metadata: Mapping[str, Any]
) -> Iterator[tuple[str, float]]:
    series = series_of_document(key, parsed.fields)
    yield title, WHOLE
    if series:
        yield series.identifier, WHOLE
        if re.match(rf"{re.escape(series.identifier)}\b", title, re.IGNORECASE):
            title = title[len(series.identifier) :].lstrip(" .:–—-") or title
            yield title, WHOLE
    bare = title
    if title.rstrip().endswith((")", "]")):
        opening = max(title.rfind("("), title.rfind("["))
        yield title.replace("(", " ").replace(")", " ").replace("[", " ").replace("]", " "), WHOLE
        if opening > 0:
            bare = title[:opening].rstrip()
            yield bare, WHOLE
    yield from _shorter(bare)
    for alias in (*parsed.names, *_stated_aliases(parsed, metadata)):
        yield alias, WHOLE


def _shorter(bare: str) -> Iterator[tuple[str, float]]:
    """Shorter forms of a title without brackets."""
    words = bare.split()
    if len(words) > 1 and words[0].lower() in ("the", "a", "an") and name_of(" ".join(words[1:])) not in STOP_WORDS:
        yield " ".join(words[1:]), WITHOUT_ARTICLE if len(words) > 2 else FIRST_PART
    if len(words) > 2 and words[0].rstrip(".").lower() in HONORIFICS:
        yield " ".join(words[1:]), WITHOUT_HONORIFIC
    comma = bare.find(",")
    if comma > 0:
        yield bare[:comma], FIRST_PART
    for end in _PART_ENDS:
        before, found, _ = bare.partition(end)
        if found and before.strip():
            yield before, FIRST_PART


def _stated_aliases(parsed: ParsedDocument, metadata: Mapping[str, Any]) -> list[str]:
    stated = [value for name, value in parsed.fields if name in _ALIAS_FIELDS]
    for field in _ALIAS_FIELDS:
        value = metadata.get(field)
        if isinstance(value, str):
            stated.append(value)
        elif isinstance(value, list):
            stated += [alias for alias in value if isinstance(alias, str)]
    aliases = [alias.strip() for text in stated for alias in text.strip("[]").split(",")]
    return [alias for alias in aliases if alias][:MAX_ALIASES]


def document_title(upsert: DocumentUpsert, parsed: ParsedDocument) -> str:
    """The given title, else the parsed one, shortened, else the last part of the id.

    A series number that the document states itself is put in front, unless the title has it:
    `PEP 8 – Style Guide for Python Code`. One known only from its id names a document without a title, if the series is
    a known one; elsewhere it would be one more word in each of its passages.
    """
    title = " ".join(without_invisible(upsert.title or shortened_title(parsed.title or "")).split())
    series = stated_series(upsert.key, parsed.fields)
    if not title:
        number = series or series_of_path(upsert.key.document_id)
        if number and (number == series or number.series in KNOWN_SERIES):
            return number.identifier
        return upsert.key.document_id.rstrip("/").rpartition("/")[2]
    if series is None or f" {name_of(series.identifier)} " in f" {bare_name(title)} ":
        return title
    return f"{series.identifier} – {title}"
