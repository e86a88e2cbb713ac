"""Extractors that a collection may choose instead of the default ones, and what of their answers is taken.

What an extractor says of a chunk is taken only as far as the chunk states it: a name has to be in the chunk's text, a
statement in one of its sentences together with both names. The rest is refused as invented.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from indexer.documents import Chunk, PreparedDocument, Statement
from indexer.extraction.entities import entities_by_rules
from indexer.extraction.entity_mentions import MAX_MENTIONS_PER_CHUNK, NUMBER, TIME, EntityMention
from indexer.extraction.lexicon import STOP_WORDS
from indexer.extraction.name_form import is_calendar_time
from indexer.extraction.names import MAX_NAME_CHARACTERS, name_of
from indexer.extraction.relations import DEFINITION, MAX_STATEMENTS_PER_CHUNK, SENTENCE
from schemas.graph_delta import ENTITY_TYPES
from schemas.predicates import IS_A

MODEL_CONFIDENCE = 0.7  # of all that it says: it gives no probability; above the rules' types
MAX_KNOWN_NAMES = 40
MAX_ANSWERED = 256  # entities, and statements, of one answer that are looked for in the text
_PREDICATE = re.compile(r"[a-z][a-z0-9_]{0,63}")


class AnsweredEntity(msgspec.Struct, frozen=True):
    """`name` as written in the text; `definition` are the words there that define it."""

    name: str
    type: str
    definition: str | None = None


class AnsweredStatement(msgspec.Struct, frozen=True):
    """`sentence` states it, and has both names in it, as written in the text."""

    subject: str
    predicate: str
    object: str
    sentence: str


class ExtractorAnswer(msgspec.Struct, frozen=True):
    """What an extractor says of one chunk. `statements` is None from one that looks for entities only."""

    entities: list[AnsweredEntity]
    statements: list[AnsweredStatement] | None = None


class Extractor(Protocol):
    """One that finds the entities of a text, and perhaps statements."""

    version: str
    """Of everything that decides the answers: part of a document's revision, and of each statement's evidence."""
    at_once: int
    """How many texts it takes at once, from as many threads."""

    def extract(self, text: str, known_names: Sequence[str]) -> ExtractorAnswer:
        """The entities of a chunk's text; `known_names` are those the rules found in its document.

        May be called again with the same text, and need not answer the same. Raises ExtractorFailure.
        """
        ...

    def close(self) -> None: ...


class Extraction(msgspec.Struct, frozen=True):
    """What is taken of an answer. `statements` as in the answer; `refused` counts what was left out as invented."""

    mentions: tuple[EntityMention, ...]
    statements: tuple[Statement, ...] | None
    refused: int


def known_names(prepared: PreparedDocument) -> list[str]:
    """The names of a document by the rules: what it is about, then the most frequent ones; at most MAX_KNOWN_NAMES."""
    counts: dict[str, int] = {}
    surfaces: dict[str, str] = {about.name: about.surface for about in prepared.about}
    for one in prepared.mentions:
        counts[one.name] = counts.get(one.name, 0) + one.count
        surfaces.setdefault(one.name, one.surface)
    about = {one.name for one in prepared.about}
    ranked = sorted(surfaces, key=lambda name: (name not in about, -counts.get(name, 0), name))
    return [surfaces[name] for name in ranked[:MAX_KNOWN_NAMES]]


def taken(prepared: PreparedDocument, chunk: Chunk, answer: ExtractorAnswer, version: str) -> Extraction:
    """The part of an answer that the chunk's text bears out, each name and each statement once.

    Of each list the first MAX_ANSWERED are looked at, so that a long answer takes little time. Numbers
    are left out, and times that are not calendar times, as those of the tagger are. An entity's definition makes the
    statement `is_a`, where it is in a sentence that names the entity.
    """
    mentions: dict[str, EntityMention] = {}
    statements: dict[tuple[str, str, str], Statement] = {}
    refused = sum(max(0, len(each) - MAX_ANSWERED) for each in (answer.entities, answer.statements or ()))
    for entity in answer.entities[:MAX_ANSWERED]:
        mention = _mention(prepared, chunk, entity)
        if mention is None:
            refused += 1
        elif _is_taken(entity):
            if len(mentions) < MAX_MENTIONS_PER_CHUNK:
                mentions.setdefault(mention.name, mention)
            if entity.definition:
                refused += not _add(statements, _definition(prepared, chunk, entity, mention.sentences, version))
    for stated in (answer.statements or [])[:MAX_ANSWERED]:
        refused += not _add(statements, _statement(prepared, chunk, stated, version))
    return Extraction(
        tuple(mentions[name] for name in sorted(mentions)),
        None if answer.statements is None else tuple(statements[key] for key in sorted(statements)),
        refused,
    )


def _mention(prepared: PreparedDocument, chunk: Chunk, entity: AnsweredEntity) -> EntityMention | None:
    """None for what the text does not bear out."""
    places, name = list(_places(chunk.text, entity.name)), _name(entity.name)
    if not places or not name or entity.type not in (*ENTITY_TYPES, NUMBER):
        return None
    sentences = sorted({prepared.sentence_at(chunk.start + start) for start, _ in places})
    surface = " ".join(entity.name.split())
    return EntityMention(chunk.ordinal, name, surface, len(places), tuple(sentences), entity.type, MODEL_CONFIDENCE)


def _is_taken(entity: AnsweredEntity) -> bool:
    return entity.type != NUMBER and (entity.type != TIME or is_calendar_time(entity.name))


def entities_of(
    prepared: PreparedDocument, extractions: Sequence[Extraction | None], default: Sequence[EntityMention] | None
) -> Sequence[EntityMention] | None:
    """The entities of a document: those extracted, and for chunks without an extraction the `default` ones, which are
    the rules' for None. All are the default ones where nothing was extracted."""
    extracted = {index: each.mentions for index, each in enumerate(extractions) if each is not None}
    if not extracted:
        return default
    others = entities_by_rules(prepared.mentions) if default is None else default
    kept = [one for one in others if one.chunk not in extracted]
    return [*kept, *(mention for mentions in extracted.values() for mention in mentions)]


def statements_of(prepared: PreparedDocument, extractions: Sequence[Extraction | None]) -> tuple[Statement, ...]:
    """The statements of a document: of chunks whose statements were extracted, these instead of what the rules read in
    its sentences. What metadata, lists and acronyms state stays."""
    extracted = {
        index: each.statements for index, each in enumerate(extractions) if each and each.statements is not None
    }
    kept = [
        one for one in prepared.statements if one.chunk not in extracted or one.extractor not in (SENTENCE, DEFINITION)
    ]
    known = {_identity(one) for one in kept}
    fresh = [one for found in extracted.values() for one in found if _identity(one) not in known]
    return (*kept, *fresh)


def _identity(statement: Statement) -> tuple[int, str, tuple[tuple[str, str], ...]]:
    return statement.chunk, statement.predicate, tuple((role, name) for role, name, _ in statement.roles)


def _add(statements: dict[tuple[str, str, str], Statement], statement: Statement | None) -> bool:
    """Whether there is one; more than MAX_STATEMENTS_PER_CHUNK are left out."""
    if statement is not None and len(statements) < MAX_STATEMENTS_PER_CHUNK:
        (_, subject, _), (_, described, _) = statement.roles
        statements.setdefault((statement.predicate, subject, described), statement)
    return statement is not None


def _definition(
    prepared: PreparedDocument, chunk: Chunk, entity: AnsweredEntity, sentences: Sequence[int], version: str
) -> Statement | None:
    for start, _ in _places(chunk.text, entity.definition or ""):
        sentence = prepared.sentence_at(chunk.start + start)
        if sentence in sentences:
            return _made(chunk, entity.name, IS_A, entity.definition or "", sentence, version)
    return None


def _statement(prepared: PreparedDocument, chunk: Chunk, stated: AnsweredStatement, version: str) -> Statement | None:
    predicate = "_".join(stated.predicate.lower().replace("-", " ").split())
    if _PREDICATE.fullmatch(predicate) is None:
        return None
    for start, end in _places(chunk.text, stated.sentence):
        text = chunk.text[start:end]
        if any(_places(text, stated.subject)) and any(_places(text, stated.object)):
            sentence = prepared.sentence_at(chunk.start + start)
            return _made(chunk, stated.subject, predicate, stated.object, sentence, version)
    return None


def _made(chunk: Chunk, subject: str, predicate: str, described: str, sentence: int, version: str) -> Statement | None:
    names = _name(subject), _name(described)
    if not all(names) or names[0] == names[1]:
        return None
    surfaces = " ".join(subject.split()), " ".join(described.split())
    roles = (("subject", names[0], surfaces[0]), ("object", names[1], surfaces[1]))
    return Statement(chunk.ordinal, predicate, roles, MODEL_CONFIDENCE, version, sentence)


def _name(surface: str) -> str:
    """Normalised; empty for what is not a name."""
    if len(surface) > MAX_NAME_CHARACTERS or not any(map(str.isalnum, surface)):
        return ""
    name = name_of(surface)
    return "" if name in STOP_WORDS else name


def _places(text: str, words: str) -> Iterator[tuple[int, int]]:
    """The bounds at which the words are in the text as whole words, whatever the blanks between them."""
    parts = words.split()
    if not parts or len(words) > len(text) + len(parts):
        return
    pattern = r"\s+".join(map(re.escape, parts))
    for found in re.finditer(rf"(?<!\w){pattern}(?!\w)", text):
        yield found.span()
