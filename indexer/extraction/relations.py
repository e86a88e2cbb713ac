"""Relation extraction: the statements of metadata and of sentence patterns (`X is a Y`, `X requires Y`, `Name (N)`)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from indexer.documents import ChunkedDocument, ParsedDocument, Statement
from indexer.extraction.lexicon import MONTHS, SENTENCE_STARTERS, STOP_WORDS, word_set
from indexer.extraction.metadata import metadata_statements
from indexer.extraction.names import MAX_NAME_CHARACTERS, RUN, name_of
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.series import series_of_document
from schemas.ids import DocumentKey

EXTRACTOR = "pattern"
DEFINITION_CONFIDENCE = 0.7
RELATION_CONFIDENCE = 0.7
ALIAS_CONFIDENCE = 0.9

MAX_STATEMENTS_PER_CHUNK = 16
MAX_OBJECT_WORDS = 6
MAX_SENTENCE_CHARACTERS = 1_000

# Predicate → the verb phrases that state it.
_PHRASES = {
    "part_of": "is part of|is a part of|are part of|was part of|belongs to",
    "requires": "requires",
    "depends_on": "depends on|relies on",
    "builds_on": "builds on|is built on|is based on|was based on",
    "replaces": "replaces|replaced|supersedes|superseded|obsoletes",
    "superseded_by": "is superseded by|was superseded by|has been superseded by|is obsoleted by"
    "|is replaced by|was replaced by|has been replaced by",
    "extends": "extends",
    "implements": "implements|is an implementation of",
    "uses": "uses",
    "explains": "explains",
    "written_by": "was written by|is written by",
    "directed_by": "was directed by|is directed by",
    "founded_by": "was founded by",
    "invented_by": "was invented by",
    "developed_by": "was developed by|is developed by",
    "maintained_by": "is maintained by",
    "located_in": "is located in|was located in",
    "born_in": "was born in",
}
_RELATIONS = {phrase: predicate for predicate, phrases in _PHRASES.items() for phrase in phrases.split("|")}
_VERBS = re.compile(
    rf" (?:also |now )?({'|'.join(sorted(_RELATIONS, key=lambda verb: (-len(verb), verb)))}) (?:the |an? )?"
)
_BRACKET = r"(?: ?\([^()]{0,200}\))?"
_IS_A = re.compile(rf"{_BRACKET}(?:, [^,]{{1,80}},)? (?:is|was|are|were) (?:also |still |now )?(an?|the|one of the) ")
_OBJECT_WORD = re.compile(r"[^\W_][\w'’&/+-]*")
_OBJECT_ENDS = (STOP_WORDS - word_set("of first last next former two same own")) | word_set(
    """appearing available based best born called consisting created designed developed directed featuring founded held
    intended known located made named near owned part produced published released spoken starring used well written"""
)
_ACRONYM = re.compile(r" \((?:or )?([A-Z][A-Za-z]{0,8}[A-Z])s?\)")
_WORD = re.compile(r"[A-Za-z][\w'’]*")


def extract_statements(
    title: str,
    parsed: ParsedDocument,
    chunked: ChunkedDocument,
    key: DocumentKey,
    metadata: Mapping[str, Any],
    offsets: OffsetIndex,
) -> tuple[Statement, ...]:
    """Statements of the metadata first, anchored at chunk 0, then those of sentences, by chunk; none without chunks.

    The subject of metadata is the document's identifier (`PEP 8`) if it has one, else its title.
    """
    if not chunked.chunks:
        return ()
    series = series_of_document(key, parsed.fields)
    subject = series.identifier if series else title
    return metadata_statements(subject, parsed.fields, metadata, series) + _sentence_statements(parsed, offsets)


def _sentence_statements(parsed: ParsedDocument, offsets: OffsetIndex) -> tuple[Statement, ...]:
    """By chunk, predicate and names; at most MAX_STATEMENTS_PER_CHUNK. Time is linear in the length."""
    found: dict[tuple[int, str, str, str], Statement] = {}
    counts: dict[int, int] = {}
    for number, (start, end) in enumerate(offsets.sentences):
        chunk = offsets.chunk_at(start)
        if chunk < 0 or end - start > MAX_SENTENCE_CHARACTERS:
            continue
        for predicate, subject, value, confidence in _statements_of(parsed.text, start, end):
            names = name_of(subject), name_of(value)
            key = (chunk, predicate, *names)
            if (
                not all(names)
                or names[0] == names[1]
                or key in found
                or counts.get(chunk, 0) >= MAX_STATEMENTS_PER_CHUNK
            ):
                continue
            counts[chunk] = counts.get(chunk, 0) + 1
            roles = (("subject", names[0], subject), ("object", names[1], value))
            found[key] = Statement(chunk, predicate, roles, confidence, EXTRACTOR, number)
    return tuple(found[key] for key in sorted(found))


def _statements_of(text: str, start: int, end: int) -> Iterator[tuple[str, str, str, float]]:
    opening = RUN.match(text, start, end)
    if opening and _is_subject(opening.group()):
        verb = _IS_A.match(text, opening.end(), end)
        value = _noun_phrase(text, verb.end(), end) if verb else ""
        if value:
            yield "is_a", opening.group(), value, DEFINITION_CONFIDENCE
    for verb in _VERBS.finditer(text, start, end):
        subject = _run_before(text, start, verb.start())
        target = RUN.match(text, verb.end(), end)
        if subject and target and len(target.group()) <= MAX_NAME_CHARACTERS:
            yield _RELATIONS[verb[1]], subject, _without_possessive(target.group()), RELATION_CONFIDENCE
    for acronym in _ACRONYM.finditer(text, start, end):
        long_form = _long_form(text[max(start, acronym.start() - 100) : acronym.start()], acronym[1])
        if long_form:
            yield "also_known_as", long_form, acronym[1], ALIAS_CONFIDENCE


def _is_subject(run: str) -> bool:
    first = run.partition(" ")[0].lower()
    return (
        len(run) <= MAX_NAME_CHARACTERS and (first == "the" or first not in SENTENCE_STARTERS) and first not in MONTHS
    )


def _run_before(text: str, start: int, end: int) -> str:
    """The capitalised run that ends where the verb begins; empty if there is none."""
    low = max(start, end - MAX_NAME_CHARACTERS)
    for match in RUN.finditer(text, low, end):
        if match.end() == end and (match.start() > low or low == start):
            run = match.group()
            first, _, rest = run.partition(" ")
            starts_sentence = match.start() == start and first.lower() in SENTENCE_STARTERS and first.lower() != "the"
            return rest if starts_sentence else run
    return ""


def _noun_phrase(text: str, start: int, end: int) -> str:
    """Up to MAX_OBJECT_WORDS words, ended by punctuation or a word that no noun phrase contains; may be empty."""
    last = at = start
    words = 0
    while words < MAX_OBJECT_WORDS:
        word = _OBJECT_WORD.match(text, at, end)
        if word is None or word.group().lower() in _OBJECT_ENDS:
            break
        words += 1
        if word.group().lower() != "of":
            last = word.end()
        at = word.end()
        if not text.startswith(" ", at, end):
            break
        at += 1
    return text[start:last].strip()


def _without_possessive(run: str) -> str:
    return run[:-2] if run.endswith(("'s", "’s")) else run


def _long_form(before: str, acronym: str) -> str:
    """The words before an acronym that it abbreviates, stop words aside: `Centers for Disease Control` (CDC)."""
    letters = acronym.lower()
    words = [match.span() for match in _WORD.finditer(before)]
    at = len(letters) - 1
    for low, high in reversed(words):
        word = before[low:high].lower()
        if word[0] == letters[at]:
            if at == 0:
                return before[low:]
            at -= 1
        elif word not in STOP_WORDS:
            return ""
    return ""
