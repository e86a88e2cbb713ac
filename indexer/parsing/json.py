"""JSON: each content field, at any depth, becomes a section.

A field is content if the last word of its name says so (`content`, `body`, `articleBody`, `short_description` …), or
if it is text too long for a value; beside one, shorter running text is, too. Its value is a string, an array of strings
(one section), rich text as editors keep it (one section, see `rich_text`), or an object or array of such fields. HTML
in a text is read as HTML. Words that are neither content nor a field are noted.

Where no field is content, each object is read as a row of a table: a section of sentences such as `sku: P-7. price:
12.`, with the values of objects within it under their path.

A section's headings are its JSON path, as in RFC 9535 without the `$.`, then the titles of the objects around it:
`("chapters[0].sections[2].body", "Rivers", "The bed")`. They are not part of the text.
"""

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import cast

import msgspec

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import normalise
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.front_matter import Fields, field_name
from indexer.parsing.html import write_text_or_markup
from indexer.parsing.html_nesting import tag_names
from indexer.parsing.registry import MAX_JSON_DEPTH, MAX_TABLE_ROWS
from indexer.parsing.rich_text import RichText
from indexer.parsing.text import field_sentence, write_linked

MAX_FIELD_CHARACTERS = 200
MAX_FIELDS = 100
RUNNING_WORDS, SENTENCE_WORDS = 12, 5
FIELD_DEPTH = 3  # objects within objects whose values are fields

_CONTENT = tag_names(
    "abstract answer article body caption comment content contents copy description detail details excerpt fulltext "
    "html lead lede markdown message note notes overview paragraph paragraphs passage passages prose question quote "
    "readme remark remarks review snippet story summary synopsis text texts transcript"
)
_TITLES = ("title", "heading", "headline", "name", "subject", "label")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PLAIN_KEY = re.compile(r"[^\W\d]\w{0,79}")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3001-\u30ff\u3400-\u9fff]{12}")
_SENTENCE_ENDS = (".", "!", "?", "…", "。", "！", "？", "।", "؟")
_TAGS = re.compile(r"<[^<>]*>")
_LEFT_OUT_SHOWN = 5
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64 - 1


def parse(text: str) -> ParsedDocument:
    """The title is that of the outermost object; its other short values become fields."""
    try:
        root: object = msgspec.json.decode(text)
    except RecursionError as error:
        raise _too_deep() from error
    except msgspec.DecodeError as error:
        raise _malformed(text) from error
    except UnicodeEncodeError as error:
        raise UnparsableDocument("malformed", "The content is not JSON: it holds half a surrogate pair.") from error
    builder = DocumentBuilder()
    reader = _Reader()
    found = list(reader.content(root, "", (), depth=0, holds_content=_is_text(root)))
    for path, titles, pieces in found if reader.has_content or _is_text(root) else ():
        builder.open_section((_shortened(path or "$"), *titles))
        for piece in pieces:
            write_text_or_markup(builder, normalise(piece))
            builder.break_block()
    title = _title_of(root)[0] if isinstance(root, dict) else None
    parsed = builder.finish(title, _fields(root), reader.notes())
    if not parsed.sections or (title and parsed.text == title):
        parsed = _read_as_rows(root, title)
    if not parsed.sections:
        raise UnparsableDocument("empty_content", "Nothing readable is in the JSON: it has no object with a value.")
    return parsed


def _read_as_rows(root: object, title: str | None) -> ParsedDocument:
    builder = DocumentBuilder()
    for number, (path, titles, sentences) in enumerate(_rows(root, "", ())):
        if number == MAX_TABLE_ROWS:
            raise UnparsableDocument(
                "too_large", f"The JSON holds more than {MAX_TABLE_ROWS:,} objects. Send it in several parts."
            )
        builder.open_section((_shortened(path or "$"), *titles))
        write_linked(builder, " ".join(sentences))
    return builder.finish(title, _fields(root))


_Found = Iterator[tuple[str, tuple[str, ...], list[str]]]


def _rows(value: object, path: str, titles: tuple[str, ...]) -> _Found:
    """(path, titles of the objects around it, sentences) of each object with values of its own, in document order."""
    if isinstance(value, dict):
        title = _title_of(value)[0]
        below = (*titles, title) if title else titles
        if sentences := [field_sentence(name, text) for name, text in _values(value, "")]:
            yield path, below, sentences
        for key, inner in value.items():
            yield from _rows_within(inner, _step(path, key), below)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _rows(inner, f"{path}[{number}]", titles)


def _rows_within(value: object, path: str, titles: tuple[str, ...]) -> _Found:
    """The objects in arrays; those that are values alone are part of the row around them."""
    if isinstance(value, list):
        yield from _rows(value, path, titles)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _rows_within(inner, _step(path, key), titles)


def _values(value: dict[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    """(path, text) of the strings, numbers, truth values and arrays of these in an object and the objects in it."""
    for key, inner in value.items():
        name = f"{prefix}{' '.join(normalise(key).split())}"
        if isinstance(inner, dict):
            yield from _values(inner, f"{name}.")
            continue
        every = inner if isinstance(inner, list) else [inner]
        if text := ", ".join(filter(None, map(_shown, every))):
            yield name, text


def _shown(value: object) -> str:
    """A value as it is read; nothing for null, objects and arrays."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return " ".join(normalise(value).split())
    return str(value) if isinstance(value, int | float) else ""


class _Reader:
    """Finds content. `has_content`: whether any is so by its name or length, not only beside such."""

    def __init__(self) -> None:
        self.has_content = False
        self._left_out: list[str] = []
        self._rich_text = RichText()

    def notes(self) -> list[str]:
        further = len(self._left_out) - _LEFT_OUT_SHOWN
        shown = ", ".join(map(_shortened, self._left_out[:_LEFT_OUT_SHOWN])) + (
            f" and {further:,} more" * (further > 0)
        )
        return [f"Short values beside the text were left out: {shown}."] if shown else []

    def content(self, value: object, path: str, titles: tuple[str, ...], *, depth: int, holds_content: bool) -> _Found:
        """(path, titles of the objects around it, texts) of each content field, in document order."""
        if depth > MAX_JSON_DEPTH:
            raise _too_deep()
        if _is_text(value):
            texts = [value] if isinstance(value, str) else cast("list[str]", value)
            if holds_content and any(map(str.strip, texts)):
                yield path, titles, texts
        elif markup := self._rich_text.as_html(value):
            self.has_content = True
            yield path, titles, [markup]
        elif isinstance(value, dict):
            yield from self._of_object(value, path, titles, depth=depth, holds_content=holds_content)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                if inner and isinstance(inner, str | dict | list):
                    step = f"{path}[{number}]"
                    yield from self.content(inner, step, titles, depth=depth + 1, holds_content=holds_content)

    def _of_object(
        self, value: dict[str, object], path: str, titles: tuple[str, ...], *, depth: int, holds_content: bool
    ) -> _Found:
        """As `content`; within a content field, any string with blanks is content. A text that is there twice, plain
        and as rich text, is taken once."""
        title, title_key = _title_of(value)
        below = (*titles, title) if title else titles
        written: set[str] = set()
        for key, inner in value.items():
            if key == title_key or not inner or not isinstance(inner, str | dict | list):
                continue
            step = _step(path, key)
            is_content = (
                _names_content(key)
                or (holds_content and (not isinstance(inner, str) or " " in inner))
                or (isinstance(inner, str) and len(inner) > MAX_FIELD_CHARACTERS and _has_words(inner))
            )
            self.has_content |= is_content and (isinstance(inner, str) or _is_text(inner))
            is_read = is_content or (_is_text(inner) and _is_running(inner))
            if not is_read and _is_text(inner) and _has_words(inner) and (depth > FIELD_DEPTH or "[" in path):
                self._left_out.append(step)
            for place, around, texts in self.content(inner, step, below, depth=depth + 1, holds_content=is_read):
                words = "".join(unescape(_TAGS.sub("", texts[0])).split()) if place == step and len(texts) == 1 else ""
                if not words or words not in written:
                    yield place, around, texts
                written.add(words)


def _has_words(text: object) -> bool:
    """Whether a string, or one of an array, is more than a word or a code."""
    texts = [text] if isinstance(text, str) else cast("list[str]", text)
    return any(" " in one.strip() or _UNSPACED.search(one) is not None for one in texts)


def _is_running(text: object) -> bool:
    """Whether it reads as sentences rather than as a value: by its words, and how it ends."""
    joined = text if isinstance(text, str) else " ".join(cast("list[str]", text))
    words = joined.split()
    return (
        len(words) >= RUNNING_WORDS
        or (len(words) >= SENTENCE_WORDS and words[-1].endswith(_SENTENCE_ENDS))
        or (_UNSPACED.search(joined) is not None and joined.rstrip().endswith(_SENTENCE_ENDS))
    )


def _is_text(root: object) -> bool:
    return isinstance(root, str) or (isinstance(root, list) and all(isinstance(one, str) for one in root))


def _names_content(key: str) -> bool:
    words = _WORD.findall(key[-80:])
    return bool(words) and words[-1].lower() in _CONTENT


def _title_of(value: dict[str, object]) -> tuple[str | None, str | None]:
    """(an object's title, the key of that field)."""
    for key in _TITLES:
        title = value.get(key)
        if isinstance(title, str) and title.strip():
            return _shortened(" ".join(normalise(title).split())), key
    return None, None


def _step(path: str, key: str) -> str:
    if _PLAIN_KEY.fullmatch(key):
        return f"{path}.{key}" if path else key
    return f"{path}[{msgspec.json.encode(_shortened(normalise(key))).decode()}]"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_FIELD_CHARACTERS else text[: MAX_FIELD_CHARACTERS - 1] + "…"


def _fields(root: object) -> Fields:
    """The outermost object's strings, numbers and arrays of strings, except content and title; nested ones by path."""
    found: Fields = []
    if isinstance(root, dict):
        title_key = _title_of(root)[1]
        _add_fields(found, {key: value for key, value in root.items() if key != title_key}, "", FIELD_DEPTH)
    return found


def _add_fields(found: Fields, values: dict[str, object], prefix: str, depth: int) -> None:
    for key, value in values.items():
        name = field_name(key[:80])
        if not name or _names_content(key):
            continue
        if isinstance(value, dict):
            if depth:
                _add_fields(found, value, f"{prefix}{name}.", depth - 1)
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                is_long = isinstance(one, int) and not _LEAST_INTEGER <= one <= _MOST_INTEGER
                shown = str(float(str(one)) if is_long else one)
                written = " ".join(normalise(shown[: MAX_FIELD_CHARACTERS + 1]).split())
                if 0 < len(written) <= MAX_FIELD_CHARACTERS and len(found) < MAX_FIELDS:
                    found.append((f"{prefix}{name}", written))


def _malformed(text: str) -> UnparsableDocument:
    """Where the rules are broken, as the standard library sees it; what it takes all the same it has no place for."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        why = f"line {error.lineno}, column {error.colno} breaks its rules"
    except (ValueError, RecursionError):
        why = "it breaks its rules"
    else:
        why = "it holds NaN, a number that is too large, or half a surrogate pair"
    return UnparsableDocument("malformed", f"The content is not JSON: {why}.")


def _too_deep() -> UnparsableDocument:
    return UnparsableDocument("too_deep", f"The JSON nests deeper than {MAX_JSON_DEPTH} levels.")
