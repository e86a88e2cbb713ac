"""Relation extraction: the statements of metadata and of sentences (`X is a Y`, `X requires Y`, `Name (N)`)."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from indexer.documents import Chunk, ChunkedDocument, ParsedDocument, Section, Statement
from indexer.extraction.lexicon import STOP_WORDS, is_part_of_document, word_set
from indexer.extraction.metadata import metadata_statements, objects_of, predicate_of
from indexer.extraction.names import MAX_NAME_CHARACTERS, PART, name_of
from indexer.extraction.offsets import OffsetIndex
from indexer.extraction.prose.appositions import apposition_facts, life_facts
from indexer.extraction.prose.clauses import clause_facts, is_factual
from indexer.extraction.prose.copulas import chained_places
from indexer.extraction.prose.coreference import References
from indexer.extraction.prose.facts import Fact
from indexer.extraction.prose.noun_phrases import words_of
from indexer.extraction.prose.simplification import affirmed, plain
from indexer.extraction.relating_fields import is_listed
from indexer.extraction.series import series_of_document
from indexer.extraction.tabular import Cell, cells_of
from schemas.graph_delta import DENIAL
from schemas.ids import DocumentKey
from schemas.predicates import ALIAS

LIST = "list"
TABLE = "table"
SENTENCE = "sentence"
DEFINITION = "definition"  # an `is_a` whose sentence says what its subject is
ACRONYM = "acronym"
ALIAS_CONFIDENCE = 0.9
LEAD_CONFIDENCE = 0.9  # of a definition of what the document is about, among its first sentences
LEAD_SENTENCES = 3
LISTED_CONFIDENCE = 0.9
MAX_LISTED = 256
MAX_TABULAR = 4_096  # of one document
MAX_HEADING_WORDS = 5
# In a text these are not about its subject, but directions to readers, or settings in an example.
_NOT_IN_LISTS = word_set("see_also related related_to updates uses channel repository contact")

MAX_STATEMENTS_PER_CHUNK = 16
MAX_SENTENCE_CHARACTERS = 1_000
MIN_SENTENCE_WORDS = 3

_LISTED = re.compile(
    r"^[ \t]*(?:[-*•][ \t]+)?(?P<field>[A-Za-z][\w-]*(?: [\w-]+){0,2})(?::[ \t]+|[ \t]+[:|][ \t]+)"
    r"(?P<value>[^|\n]{1,120})$",
    re.MULTILINE,
)
_ACRONYM = re.compile(r" \((?:or )?([A-Z][A-Za-z]{0,8}[A-Z])s?\)")
_WORD = re.compile(r"[A-Za-z][\w'’]*")
_NOT_PROSE = re.compile(r"[{}<>|=\\^~$]|::|->|\.\.\.$|©|Copyright|\bimport \S+$")
_CODE_LINE = re.compile(r"\s*(?:#|>>>|\$ )")
_PROSE = re.compile(r" [a-z]{2}")


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
    about = frozenset((name_of(title), name_of(subject)))
    cells = (cell for section in chunked.sections for cell in cells_of(parsed, section, title))
    tabular = _statements_of(cells, offsets, TABLE, MAX_TABULAR)
    run_together = {(one.predicate.replace("_", ""), one.roles[1][1]) for one in tabular if "_" in one.predicate}
    own = metadata_statements(subject, title, parsed.fields, metadata, series)
    return (
        tuple(one for one in own if "_" in one.predicate or (one.predicate, one.roles[1][1]) not in run_together)
        + _statements_of(_listed(title, parsed, chunked), offsets, LIST, MAX_LISTED)
        + tabular
        + _sentence_statements(parsed, chunked, offsets, about)
    )


def _listed_lines(text: str, section: Section) -> Iterator[tuple[str, re.Match[str]]]:
    """(predicate, line) of each line and row of a section that states a field."""
    for line in _LISTED.finditer(text, section.start, section.end):
        predicate = predicate_of(line["field"])
        if is_listed(predicate) and predicate not in _NOT_IN_LISTS and not _is_head_of_table(text, line):
            yield predicate, line


def _listed(title: str, parsed: ParsedDocument, chunked: ChunkedDocument) -> Iterator[Cell]:
    """What lines `Owner: Team Petrel` and rows `Owner | Team Petrel` state.

    The subject is what the section is about: the name that its heading is, if the section states two fields or more;
    in the first section, and in those of general headings such as `Overview`, the document, unless it has a header.
    """
    for at, section in enumerate(chunked.sections):
        lines = list(_listed_lines(parsed.text, section))
        subject = _name_in_heading(section) if len(dict(lines)) > 1 else ""
        if not subject and not parsed.fields and (at == 0 or is_part_of_document(_heading(section))):
            subject = title
        for predicate, line in lines if name_of(subject) else ():
            for surface, _ in objects_of(predicate, line["value"].rstrip(" ."), title, None):
                if name_of(surface) not in ("", name_of(subject), predicate):
                    yield Cell(subject, predicate, surface, LISTED_CONFIDENCE, line.start("field"))


def _statements_of(cells: Iterable[Cell], offsets: OffsetIndex, extractor: str, most: int) -> tuple[Statement, ...]:
    """By chunk, predicate and names; the first `most`."""
    found: dict[tuple[int, str, str, str], Statement] = {}
    for subject, predicate, surface, confidence, start in cells:
        chunk, sentence, names = (
            offsets.chunk_at(start),
            offsets.sentence_at(start),
            (name_of(subject), name_of(surface)),
        )
        if chunk >= 0 and len(found) < most:
            roles = (("subject", names[0], subject), ("object", names[1], surface))
            made = Statement(chunk, predicate, roles, confidence, extractor, sentence)
            found.setdefault((chunk, predicate, *names), made)
    return tuple(found[key] for key in sorted(found))


def _is_head_of_table(text: str, line: re.Match[str]) -> bool:
    """Whether a row of two cells is the first of its table: names of columns."""
    before = text.rfind("\n", 0, max(line.start() - 1, 0)) + 1
    return " | " in line.group() and " | " not in text[before : line.start()]


def _heading(section: Section) -> str:
    return " ".join(section.headings[-1].split()) if section.headings else ""


def _name_in_heading(section: Section) -> str:
    """The heading of a section where it is a name: `Pricing API`, not `Details`."""
    heading = _heading(section) if len(section.headings) > 1 else ""
    if not heading or len(heading) > MAX_NAME_CHARACTERS or is_part_of_document(heading):
        return ""
    is_name = heading.count(" ") < MAX_HEADING_WORDS and all(word[0].isupper() for word in heading.split())
    return heading if is_name and " " in heading else ""


def _are_two_names(one: str, other: str) -> bool:
    return one != other and all(
        0 < len(name) <= MAX_NAME_CHARACTERS and not PART.fullmatch(name) for name in (one, other)
    )


def _sentence_statements(
    parsed: ParsedDocument, chunked: ChunkedDocument, offsets: OffsetIndex, about: frozenset[str]
) -> tuple[Statement, ...]:
    """By chunk, predicate and names; at most MAX_STATEMENTS_PER_CHUNK. Time is linear in the length."""
    found: dict[tuple[int, str, str, str, bool], Statement] = {}
    counts: Counter[int] = Counter()
    references = References()
    starts = [section.start for section in chunked.sections]
    for number, (start, end) in enumerate(offsets.sentences):
        first = offsets.chunk_at(start)
        if first < 0 or end - start > MAX_SENTENCE_CHARACTERS or counts[first] >= MAX_STATEMENTS_PER_CHUNK:
            continue
        at = max(0, bisect_right(starts, start) - 1)
        references.enter(at, _heading(chunked.sections[at]))
        for fact, extractor in _facts_of(parsed.text[start:end], references):
            chunk = _chunk_holding(fact, chunked.chunks, first, end)
            names = _own_name(references.whole(fact.subject), about), _own_name(references.whole(fact.object), about)
            key = (chunk, fact.predicate, *names, extractor == DENIAL)
            if chunk < 0 or not _are_two_names(*names) or key in found or counts[chunk] >= MAX_STATEMENTS_PER_CHUNK:
                continue
            counts[chunk] += extractor != DENIAL
            is_lead = extractor == DEFINITION and number < LEAD_SENTENCES and names[0] in about
            more = tuple((role, name_of(surface), surface) for role, surface in fact.more)
            roles = (("subject", names[0], fact.subject), ("object", names[1], fact.object), *more)
            confidence = LEAD_CONFIDENCE if is_lead else fact.confidence
            found[key] = Statement(chunk, fact.predicate, roles, confidence, extractor, number)
            if extractor != DENIAL:
                references.remember(fact.subject, fact.predicate, fact.object)
    return tuple(found[key] for key in sorted(found))


def _chunk_holding(fact: Fact, chunks: Sequence[Chunk], first: int, end: int) -> int:
    """The chunk that holds both ends of a fact whose sentence begins in chunk `first`: that or the next; else -1."""
    if end <= chunks[first].end:
        return first
    near = ((first + at, chunk.text) for at, chunk in enumerate(chunks[first : first + 2]))
    return next((at for at, text in near if fact.subject in text and fact.object in text), -1)


def _own_name(surface: str, about: frozenset[str]) -> str:
    """The normalised name, with the article that the document's title has: `the beatles`."""
    name = name_of(surface)
    return f"the {name}" if f"the {name}" in about else name


def facts_in(text: str) -> Iterator[tuple[Fact, str]]:
    """The facts of a single sentence, each with its extractor, read as those of a document are."""
    return _facts_of(text, References())


def _facts_of(text: str, references: References) -> Iterator[tuple[Fact, str]]:
    """The facts of a sentence, each with its extractor."""
    if not _PROSE.search(text):
        return
    if not _NOT_PROSE.search(text) and not _CODE_LINE.match(text):
        resolved = plain(references.resolved(text))
        words = words_of(resolved, 0, len(resolved))
        references.read(words)
        if len(words) >= MIN_SENTENCE_WORDS and is_factual(words):
            facts = [*clause_facts(words), *apposition_facts(words), *chained_places(words)]
            for fact in facts:
                yield fact, DEFINITION if fact.is_definition else SENTENCE
            if denied := affirmed(resolved):
                stated = {fact[:3] for fact in facts}
                would_be = clause_facts(words_of(denied, 0, len(denied)))
                denials = sorted((fact for fact in would_be if fact[:3] not in stated), key=attrgetter("is_definition"))
                # `is not the capital of` denies that it is this, not that it is there
                yield from ((fact, DENIAL) for fact in denials if fact.predicate == denials[0].predicate)
    if "(" in text:
        for fact in life_facts(text, 0, len(text)):
            yield fact, SENTENCE
        for acronym in _ACRONYM.finditer(text):
            long_form = _long_form(text[max(0, acronym.start() - 100) : acronym.start()], acronym[1])
            if long_form:
                yield Fact(ALIAS, long_form, acronym[1], ALIAS_CONFIDENCE), ACRONYM


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
