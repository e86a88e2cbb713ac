"""Entity mentions of a document: the tagger's spans of all chunks, each once, with types by vote."""

import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

import msgspec

from indexer.documents import PreparedDocument
from indexer.extraction.lexicon import PARTS_OF_DOCUMENTS, STOP_WORDS
from indexer.extraction.mention_tagger import TaggedSpan
from indexer.extraction.name_form import (
    ACRONYM,
    CLASS,
    begins_sentence,
    is_calendar_time,
    is_heading,
    is_name,
    is_no_person,
    is_reference,
    kind_of_code,
    kind_of_thing,
    whole_amount,
    whole_name,
)
from indexer.extraction.word_use import WordUse, is_common_word
from schemas.ids import bare_name

MAX_NAME_CHARACTERS = 120
MAX_MENTIONS_PER_CHUNK = 64
NUMBER, TIME = "number", "time"
THING, PERSON, PLACE, PRODUCT, IDENTIFIER = "thing", "person", "place", "product", "identifier"
MIN_TYPE_CONFIDENCE = 0.4  # of the elected type; below it is not shown
SURE_TYPE = 0.6  # in technical texts
SURE_OF_ACRONYM = 0.9  # there
SURE_IN_PROSE = 0.5  # of a mention by which common words are a name
SURE_AT_BEGINNING = 0.75  # where all mentions begin a sentence
SURE = 0.95  # in technical texts, inside a sentence
SURE_ALONE, NEVER = 0.75, 1.1  # of a common word that is a name alone, inside a sentence and elsewhere
REPEATED = 3  # or by so many, and more than the words have in lower case
_AMOUNTS = (NUMBER, TIME)
_DOUBTED_TYPES = (PERSON, "organisation", PLACE)
_ARTICLES = ("The", "the")  # part of a name, unlike `A`
_JOINED_ON = re.compile(r"(?: [-–—]|:) ")
_LOWER_CASE = re.compile(r"^(?:[a-z-]+ )+")
_JOINS = re.compile(r",? (?:and|or) |, ")


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
    by its form, see `name_form`, is left out; things become works, products, events or concepts where form shows it.
    """
    texts = [chunk.text for chunk in prepared.chunked.chunks]
    use = WordUse(texts, has_code=bool(prepared.verbatim))
    kept = _without_common_words(prepared, use, _without_overlaps(list(_candidates(prepared, spans))))
    elected = _elected_types(kept)
    unsure = {one.name for one in kept if _is_unsure(one.surface, *elected[one.name], is_technical=use.is_technical)}
    things = [
        one for one in kept if elected[one.name][0] == THING or (one.name in unsure and one.entity_type not in _AMOUNTS)
    ]
    kinds = dict.fromkeys((one.name for one in things), THING) | _kinds_of_things(prepared, things)
    kinds |= {one.name: kind for one in kept if (kind := kind_of_code(one.surface, elected[one.name][0]))}
    if use.is_technical and PRODUCT in kinds.values():
        classes = {name.lower() for text in texts for name in CLASS.findall(text)}
        kinds |= {name: IDENTIFIER for name in classes if kinds.get(name) == PRODUCT}
    return [
        one._replace(entity_type=kinds.get(one.name, elected[one.name][0]), confidence=elected[one.name][1])
        for one in kept
    ]


def _is_unsure(surface: str, kind: str, confidence: float, *, is_technical: bool) -> bool:
    """Whether it is not shown as a person, place or organisation: too few mentions agree, or its form is not one's."""
    if kind not in _DOUBTED_TYPES:
        return confidence < MIN_TYPE_CONFIDENCE
    is_acronym = ACRONYM.fullmatch(surface) is not None
    is_brand = kind_of_thing(surface, 0, len(surface)) == PRODUCT
    needed = SURE_TYPE if is_technical or is_brand else MIN_TYPE_CONFIDENCE
    if is_acronym and (is_technical or kind == PLACE):
        needed = SURE_OF_ACRONYM if is_technical else SURE_ALONE
    has_version = is_brand and " " in surface
    return confidence < needed or has_version or surface.islower() or (kind == PERSON and is_no_person(surface))


def _elected_types(occurrences: Iterable[EntityOccurrence]) -> dict[str, tuple[str, float]]:
    """{name: (type, confidence)}, see `entity_occurrences`."""
    votes: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    counts: dict[str, int] = defaultdict(int)
    for one in occurrences:
        votes[one.name][one.entity_type] += one.confidence
        counts[one.name] += 1
    elected = {
        name: min(by_type.items(), key=lambda vote: (-round(vote[1], 6), vote[0])) for name, by_type in votes.items()
    }
    return {name: (kind, round(total / counts[name], 3)) for name, (kind, total) in elected.items()}


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
    """(whether the chunk cuts the text there, mention), of names that are not names left out."""
    for chunk, text, of_chunk in zip(prepared.chunked.chunks, prepared.embedding_texts, spans, strict=True):
        before = len(text) - len(chunk.text)
        for span in of_chunk:
            bounds = span.start - before, span.end - before
            if bounds[0] < 0 or span.end - span.start > MAX_NAME_CHARACTERS:
                continue
            whole = whole_amount if span.entity_type in _AMOUNTS else whole_name
            start, end = whole(chunk.text, *bounds) or (0, 0)
            is_label = span.entity_type == THING and is_heading(chunk.text, start, end)
            if start == end or is_label or _is_verbatim(prepared, chunk.start + start):
                continue
            surface = chunk.text[start:end]
            name = bare_name(surface) if len(surface) <= MAX_NAME_CHARACTERS else ""
            if not name or (name in STOP_WORDS and span.entity_type != NUMBER):
                continue
            place = chunk.ordinal, chunk.start + start, chunk.start + end
            surface = " ".join(surface.split())
            occurrence = EntityOccurrence(*place, name, surface, span.entity_type, span.confidence)
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
    """{name: what it is}, where its form shows it at any place; what most places show (ties: by the alphabet)."""
    kinds_by_name: dict[str, list[str]] = defaultdict(list)
    for one in things:
        chunk = prepared.chunked.chunks[one.chunk]
        if kind := kind_of_thing(chunk.text, one.start - chunk.start, one.end - chunk.start):
            kinds_by_name[one.name].append(kind)
    return {name: min(set(kinds), key=lambda kind: (-kinds.count(kind), kind)) for name, kinds in kinds_by_name.items()}


def _without_common_words(
    prepared: PreparedDocument, use: WordUse, occurrences: Sequence[EntityOccurrence]
) -> list[EntityOccurrence]:
    """Those but for common words that are not names here: they have a capital for their place only, or none of their
    mentions is sure. The tagger is sure too soon in technical texts, where only a mention inside a sentence counts."""
    if use.is_technical:
        occurrences = _without_words_around(prepared, use, occurrences)
    mentions: dict[str, list[EntityOccurrence]] = defaultdict(list)
    for one in occurrences:
        if one.entity_type not in _AMOUNTS:
            mentions[one.name].append(one)
    is_no_name = _no_name_in_technical_text if use.is_technical else _no_name_in_prose
    no_names = is_no_name(prepared, use, mentions) | PARTS_OF_DOCUMENTS
    return [one for one in occurrences if one.name not in no_names or one.entity_type in _AMOUNTS]


def _no_name_in_prose(
    prepared: PreparedDocument, use: WordUse, mentions: Mapping[str, Sequence[EntityOccurrence]]
) -> set[str]:
    no_names = set()
    for name, of_name in mentions.items():
        surface, sure = of_name[0].surface, max(one.confidence for one in of_name)
        is_inside = any(_is_inside(prepared, one) for one in of_name)
        needed = SURE_IN_PROSE if is_inside else SURE_AT_BEGINNING
        if " " not in surface:
            needed = SURE_ALONE if is_inside else NEVER
        is_common = sure < needed and use.is_common(surface)
        if is_common or (not is_inside and sure < SURE and use.may_be_common(surface)):
            no_names.add(name)
    return no_names


def _no_name_in_technical_text(
    prepared: PreparedDocument, use: WordUse, mentions: Mapping[str, Sequence[EntityOccurrence]]
) -> set[str]:
    common = {name for name, of_name in mentions.items() if use.is_common(of_name[0].surface)}
    headings = {bare_name(heading) for section in prepared.chunked.sections for heading in section.headings}
    headings -= {about.name for about in prepared.about}
    evidence = _evidence(prepared, mentions, common)
    no_names = set()
    for name, of_name in mentions.items():
        surface, confidences = of_name[0].surface, evidence[name]
        is_sure = name not in headings and max(confidences, default=0.0) >= SURE
        needed = max(REPEATED, use.times_in_lower_case(surface) + 1) if name in common and not is_sure else 0
        if len(confidences) < needed or _is_doubtful(prepared, use, of_name, confidences):
            no_names.add(name)
    return no_names


def _is_doubtful(
    prepared: PreparedDocument, use: WordUse, of_name: Sequence[EntityOccurrence], confidences: Sequence[float]
) -> bool:
    """Whether it only begins sentences, unsurely; or is only referred to, as a part of a document."""
    if any(_is_inside(prepared, one) for one in of_name):
        return not confidences and _are_words(of_name[0].surface)
    return max(one.confidence for one in of_name) < SURE and use.may_be_common(of_name[0].surface)


def _are_words(surface: str) -> bool:
    """Whether it is several words of letters alone."""
    return " " in surface and surface.replace(" ", "").replace("-", "").isalpha()


def _own_part(one: EntityOccurrence, use: WordUse, alone: Set[str], inside: Set[str]) -> tuple[int, int]:
    """Which part of its surface is the name: see `_without_words_around`. `alone` are names that also occur alone,
    `inside` those inside a sentence."""
    surface = one.surface
    joined = _JOINED_ON.search(surface)
    high = len(surface[: joined.start()].rstrip()) if joined else len(surface)
    first, _, rest = surface[:high].partition(" ")
    if rest.islower() and rest.isalpha() and first not in STOP_WORDS and bare_name(first) in alone:
        return 0, len(first)
    if one.entity_type == THING and rest and one.name not in inside and _is_capitalised_common_word(first):
        return 0 if use.is_common(rest) else high - len(_LOWER_CASE.sub("", rest)), high
    return 0, high


def _without_words_around(
    prepared: PreparedDocument, use: WordUse, occurrences: Sequence[EntityOccurrence]
) -> list[EntityOccurrence]:
    """Names without the common word before them that begins a sentence (`Install Omsk`), unless they occur so inside
    one; without the common nouns behind them where they also occur alone (`Omsk config`); and without what a dash or a
    colon joins to them (`Omsk - Restart it`). What is not a name then is left out."""
    named = [one for one in occurrences if one.entity_type not in _AMOUNTS]
    alone = {one.name for one in named}
    inside = {one.name for one in named if _is_inside(prepared, one)}
    repaired = []
    for one in occurrences:
        surface = one.surface
        if one.entity_type in _AMOUNTS or len(surface) != one.end - one.start:  # with a line's end inside
            repaired.append(one)
            continue
        low, high = _own_part(one, use, alone, inside)
        kept = surface[low:high]
        if kept == surface:
            repaired.append(one)
        elif is_name(kept) and (name := bare_name(kept)):
            repaired.append(one._replace(start=one.start + low, end=one.start + high, surface=kept, name=name))
    return repaired


def _is_capitalised_common_word(word: str) -> bool:
    return (word == "A" or word[1:].islower()) and word not in _ARTICLES and is_common_word(word)


def _evidence(
    prepared: PreparedDocument, mentions: Mapping[str, Sequence[EntityOccurrence]], common: Container[str]
) -> Mapping[str, list[float]]:
    """{name: the confidences of its mentions inside sentences}, without references to a part of a document. One in a
    list with a name that is more than common words is sure: `Lisp, Scheme and ML`."""
    occurrences = sorted((one for of_name in mentions.values() for one in of_name), key=lambda one: one.start)
    listed = set()
    for at, (one, other) in enumerate(pairwise(occurrences)):
        chunk = prepared.chunked.chunks[one.chunk]
        between = chunk.text[one.end - chunk.start : other.start - chunk.start]
        if (one.name in common) != (other.name in common) and _JOINS.fullmatch(between):
            listed.add(at if one.name in common else at + 1)
    found: dict[str, list[float]] = defaultdict(list)
    for at, one in enumerate(occurrences):
        chunk = prepared.chunked.chunks[one.chunk]
        if _is_inside(prepared, one) and not is_reference(chunk.text, one.start - chunk.start, one.end - chunk.start):
            found[one.name].append(1.0 if at in listed else one.confidence)
    return found


def _is_inside(prepared: PreparedDocument, one: EntityOccurrence) -> bool:
    chunk = prepared.chunked.chunks[one.chunk]
    return not begins_sentence(chunk.text, one.start - chunk.start)
