"""Entity mentions of a document: the tagger's spans of all chunks, each once, with types by vote."""

import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from indexer.documents import PreparedDocument
from indexer.extraction.lexicon import STOP_WORDS
from indexer.extraction.mention_tagger import TaggedSpan
from indexer.extraction.name_form import (
    begins_sentence,
    common_words,
    is_calendar_time,
    is_common,
    is_heading,
    kind_of_code,
    kind_of_thing,
    whole_amount,
    whole_name,
)
from schemas.ids import normalise_name

MAX_NAME_CHARACTERS = 120
MAX_MENTIONS_PER_CHUNK = 64
NUMBER, TIME = "number", "time"
THING = "thing"
MIN_TYPE_CONFIDENCE = 0.4  # of the elected type; below it is not shown
_AMOUNTS = (NUMBER, TIME)


class EntityOccurrence(NamedTuple):
    """An entity named at `start` to `end` of the document's canonical text, in a chunk. `name` is normalised.

    `entity_type` and `confidence` are those of the vote, so equal for equal names of a document.
    """

    chunk: int
    start: int
    end: int
    name: str
    surface: str
    entity_type: str
    confidence: float


class EntityMention(msgspec.Struct, frozen=True):
    """An entity that a chunk names `count` times. `sentences` are document-wide numbers, ascending."""

    chunk: int
    name: str
    surface: str
    count: int
    sentences: tuple[int, ...]
    entity_type: str
    confidence: float


def encode_spans(spans: Sequence[TaggedSpan]) -> bytes:
    return msgspec.msgpack.encode(spans)


_spans_decoder = msgspec.msgpack.Decoder(list[TaggedSpan])


def decode_spans(content: bytes) -> list[TaggedSpan]:
    """Raises msgspec.DecodeError (a ValueError)."""
    return _spans_decoder.decode(content)


def entity_occurrences(prepared: PreparedDocument, spans: Sequence[Sequence[TaggedSpan]]) -> list[EntityOccurrence]:
    """All mentions of one document, by their start.

    `spans[i]` are those of `prepared.embedding_texts[i]`, in its offsets; those in the title and heading before the
    chunk's text are left out. Where chunks overlap, of spans that share characters the surest one counts; those at the
    ends of their chunks, which may be cut, come last. Equal names have one type, that with the greatest sum of
    confidences (ties: by the alphabet); their confidence is that sum over the number of mentions. What cannot be a name
    by its form, see `name_form`, is left out; things become works, products, events or concepts where form tells it.
    """
    kept = _without_common_words(prepared, _without_overlaps(list(_candidates(prepared, spans))))
    votes: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    counts: dict[str, int] = defaultdict(int)
    for one in kept:
        votes[one.name][one.entity_type] += one.confidence
        counts[one.name] += 1
    elected = {
        name: min(by_type.items(), key=lambda vote: (-round(vote[1], 6), vote[0])) for name, by_type in votes.items()
    }
    confidences = {name: round(total / counts[name], 3) for name, (_, total) in elected.items()}
    unsure = {name for name, confidence in confidences.items() if confidence < MIN_TYPE_CONFIDENCE}
    things = [
        one for one in kept if elected[one.name][0] == THING or (one.name in unsure and one.entity_type not in _AMOUNTS)
    ]
    kinds = dict.fromkeys((one.name for one in things), THING) | _kinds_of_things(prepared, things)
    kinds |= {one.name: kind for one in kept if (kind := kind_of_code(one.surface, elected[one.name][0]))}
    return [
        one._replace(
            entity_type=kinds.get(one.name, elected[one.name][0]),
            confidence=confidences[one.name],
        )
        for one in kept
    ]


def entity_mentions(prepared: PreparedDocument, spans: Sequence[Sequence[TaggedSpan]]) -> list[EntityMention]:
    """The entities that each chunk names, by chunk and name, without numbers; at most MAX_MENTIONS_PER_CHUNK a chunk,
    the first ones. The surface is the commonest one of the chunk (ties: the first). `spans` as in `entity_occurrences`.
    """
    found: dict[tuple[int, str], list[EntityOccurrence]] = defaultdict(list)
    names_of_chunk: dict[int, int] = defaultdict(int)
    for one in entity_occurrences(prepared, spans):
        key = one.chunk, one.name
        if one.entity_type == NUMBER or (one.entity_type == TIME and not is_calendar_time(one.surface)):
            continue
        if key not in found and names_of_chunk[one.chunk] >= MAX_MENTIONS_PER_CHUNK:
            continue
        names_of_chunk[one.chunk] += key not in found
        found[key].append(one)
    return [_mention(prepared, found[key]) for key in sorted(found)]


def _mention(prepared: PreparedDocument, occurrences: Sequence[EntityOccurrence]) -> EntityMention:
    first = occurrences[0]
    surfaces = [one.surface for one in occurrences]
    return EntityMention(
        first.chunk,
        first.name,
        max(surfaces, key=surfaces.count),
        len(occurrences),
        tuple(sorted({prepared.sentence_at(one.start) for one in occurrences})),
        first.entity_type,
        first.confidence,
    )


def _candidates(
    prepared: PreparedDocument, spans: Sequence[Sequence[TaggedSpan]]
) -> Iterable[tuple[bool, EntityOccurrence]]:
    """(whether the chunk cuts the text there, mention), of names that are no names left out."""
    for chunk, text, of_chunk in zip(prepared.chunked.chunks, prepared.embedding_texts, spans, strict=True):
        before = len(text) - len(chunk.text)
        for span in of_chunk:
            bounds = span.start - before, span.end - before
            if bounds[0] < 0 or span.end - span.start > MAX_NAME_CHARACTERS:
                continue
            whole = whole_amount if span.entity_type in _AMOUNTS else whole_name
            trimmed = whole(chunk.text, *bounds)
            if trimmed is None:
                continue
            start, end = trimmed
            if _is_verbatim(prepared, chunk.start + start) or (
                span.entity_type == THING and is_heading(chunk.text, start, end)
            ):
                continue
            surface = chunk.text[start:end]
            name = normalise_name(surface) if len(surface) <= MAX_NAME_CHARACTERS else ""
            if not name or (name in STOP_WORDS and span.entity_type != NUMBER):
                continue
            occurrence = EntityOccurrence(
                chunk.ordinal,
                chunk.start + start,
                chunk.start + end,
                name,
                " ".join(surface.split()),
                span.entity_type,
                span.confidence,
            )
            yield start == 0 or end == len(chunk.text), occurrence


def _is_verbatim(prepared: PreparedDocument, offset: int) -> bool:
    """Whether the canonical text there is a block that keeps its lines, such as code."""
    at = bisect_right(prepared.verbatim, (offset, sys.maxsize)) - 1
    return at >= 0 and offset < prepared.verbatim[at][1]


def _without_overlaps(candidates: Sequence[tuple[bool, EntityOccurrence]]) -> list[EntityOccurrence]:
    """The surest ones that share no character, by their start. Ties: the first chunk's."""
    ranked = sorted(candidates, key=lambda each: (each[0], -each[1].confidence, each[1].chunk, each[1].start))
    taken: set[int] = set()
    kept = []
    for _, one in ranked:
        characters = range(one.start, one.end)
        if taken.isdisjoint(characters):
            taken.update(characters)
            kept.append(one)
    return sorted(kept, key=lambda one: (one.start, one.chunk))


def _kinds_of_things(prepared: PreparedDocument, things: Iterable[EntityOccurrence]) -> dict[str, str]:
    """{name: what it is}, where its form tells it at any place; what most places tell (ties: by the alphabet)."""
    told: dict[str, list[str]] = defaultdict(list)
    for one in things:
        chunk = prepared.chunked.chunks[one.chunk]
        if kind := kind_of_thing(chunk.text, one.start - chunk.start, one.end - chunk.start):
            told[one.name].append(kind)
    return {name: min(kinds, key=lambda kind: (-kinds.count(kind), kind)) for name, kinds in told.items()}


def _without_common_words(
    prepared: PreparedDocument, occurrences: Sequence[EntityOccurrence]
) -> list[EntityOccurrence]:
    """Those but for common words that have a capital for their place only."""
    lower_case = common_words(chunk.text for chunk in prepared.chunked.chunks)
    named_elsewhere: set[str] = set()
    surfaces: dict[str, str] = {}
    for one in occurrences:
        chunk = prepared.chunked.chunks[one.chunk]
        surfaces.setdefault(one.name, one.surface)
        if one.entity_type in _AMOUNTS or not begins_sentence(chunk.text, one.start - chunk.start):
            named_elsewhere.add(one.name)
    common = {
        name for name, surface in surfaces.items() if name not in named_elsewhere and is_common(surface, lower_case)
    }
    return [one for one in occurrences if one.name not in common]
