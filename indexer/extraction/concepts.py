"""Concepts: what a document defines or states something of, and what its title and headings name, as entities.

The tagger and the rules of names find what is written with a capital. A concept mostly is not (`tidal turbines`), so it
is admitted by evidence: it is an end of a statement, the title or a heading whose words the text uses, or emphasised or
repeated there. Its confidence says how much of that there is. A word that is only a verb is not one. What ends a
statement and is not a concept has the type that the statement's predicate implies (the value of `author` is a person),
and literals such as dates, states and versions have none.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from indexer.documents import PreparedDocument, Statement
from indexer.extraction.entity_mentions import MAX_MENTIONS_PER_CHUNK, THING, EntityMention
from indexer.extraction.keyphrases import occurrences, tokens_of, topic_headings
from indexer.extraction.lexicon import DAYS, STOP_WORDS, word_set
from indexer.extraction.metadata import EXTRACTOR as HEADER
from indexer.extraction.name_form import is_name
from indexer.extraction.names import Name, kind_of, name_of
from indexer.extraction.prose.facts import TIME
from indexer.extraction.prose.noun_phrases import NAME, NONE, whole_phrase
from indexer.extraction.prose.open_verbs import verb_of
from indexer.extraction.prose.predicates import THIRD_PERSONS, VERB_FORMS
from indexer.extraction.prose.word_classes import JUDGEMENTS, NUMBERS, QUANTIFIERS, plural, singular
from indexer.extraction.relating_fields import type_of_value
from indexer.extraction.relations import DEFINITION, LIST
from indexer.extraction.word_use import is_common_word
from schemas.predicates import IS_A

MAX_WORDS = 5
CACHED_NAMES = 16_384
# How sure one piece of evidence makes it that a name is a concept; two pieces are independent. `stressed` are several
# words that are emphasised or repeated; a `fragment` is an end of a statement that is more, or less, than a name:
# `town of Omsk`, `new council`; a `document` is an entity since its fields say something of it.
EVIDENCE = {
    "defined": 0.8, "title": 0.7, "subject": 0.35, "object": 0.3, "heading": 0.3, "kind": 0.25, "document": 0.2,
    "fragment": 0.1, "stressed": 0.05,
}  # fmt: skip
HEADED, DEFINES = 0.5, 0.6  # how much a document is about a concept, at most 1; below what it is named by
CONCEPT, WORK = "concept", "work"
_NO_NAME = re.compile(r"@|_$|^\d+ [^\W\d]")
# Nouns that name a relation to what is spoken of, or a time of day.
GENERAL = word_set(
    """advance advantage alternative attention benefit capability care chance concern consequence disadvantage drawback
    favor favour half hour implication importance interest lead means minute moment month need night opinion period
    possibility potential relationship respect second sum view week hundred thousand million"""
) | {*NUMBERS, *DAYS}


@dataclass
class _Admitted:
    """A name that is an entity: its type, the evidence for that, and {chunk: the sentences that state it}."""

    surface: str
    entity_type: str
    evidence: set[str] = field(default_factory=set)
    stated: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    @property
    def confidence(self) -> float:
        """1 - the product of what each piece of evidence leaves open."""
        return round(1 - prod(1 - EVIDENCE[each] for each in sorted(self.evidence)), 3)


def concept_mentions(prepared: PreparedDocument, typed: Container[str]) -> list[EntityMention]:
    """The entities of a document beside those `typed`, which are names that have a type in it; by chunk and name.

    At most MAX_MENTIONS_PER_CHUNK a chunk. Time is linear in the length of the text.
    """
    admitted = _stated(prepared, typed)
    named = {name: each for name, each in _named(prepared) if name not in typed}
    terms = {name: each.surface for name, each in (*named.items(), *admitted.items())}
    places = _places(prepared, terms)
    for name, each in named.items():
        if name in places:  # what the text never uses names the document, or a part of it
            admitted.setdefault(name, each).evidence |= each.evidence
    return list(_mentions(prepared, admitted, places))


def explained_concepts(
    prepared: PreparedDocument, entities: Iterable[EntityMention]
) -> Iterator[tuple[EntityMention, float]]:
    """Of these entities those that the document defines or has a heading for, with how much it is about them."""
    relevance = {name_of(heading): HEADED for _, heading in topic_headings(prepared.chunked.sections)}
    defining = (each for each in prepared.statements if each.extractor == DEFINITION)
    relevance |= {name: DEFINES for each in defining for role, name, _ in each.roles if role == "subject"}
    for entity in entities:
        if entity.name in relevance:
            yield entity, relevance[entity.name]


def _stated(prepared: PreparedDocument, typed: Container[str]) -> dict[str, _Admitted]:
    """The ends of the document's statements, by name."""
    found: dict[str, _Admitted] = {}
    about = {each.name for each in prepared.about}
    for statement in prepared.statements:
        for role, name, surface in statement.roles:
            written = surface if name_of(surface) == name else name  # `steam boiler`, where it says `boiler`
            entity_type = "" if name in typed else _type_of_end(about, statement, role, written)
            if not entity_type:
                continue
            entity = found.setdefault(name, _Admitted(_written(written, entity_type), entity_type))
            is_document = entity_type == WORK and role == "subject"
            stated_as = ("defined" if role == "subject" else "kind") if statement.predicate == IS_A else role
            entity.evidence.add("document" if is_document else stated_as)
            if entity_type in (CONCEPT, THING) and _is_fragment(written):
                entity.evidence = {"fragment"}
            sentences = entity.stated[statement.chunk]
            if statement.sentence >= 0:
                sentences.add(statement.sentence)
    return found


def _type_of_end(about: Container[str], statement: Statement, role: str, surface: str) -> str:
    """The type of an end of a statement; "" for a literal, and for what names nothing."""
    if role not in ("subject", "object") or not any(map(str.isalpha, surface)) or TIME.fullmatch(surface):
        return ""
    if statement.extractor not in (HEADER, LIST):
        return _type_of_name(surface, is_end=True)
    if role == "object":
        known = type_of_value(statement.predicate, surface)
        return _type_of_name(surface) if known is None else known
    return WORK if name_of(surface) in about else _type_of_name(surface)


@lru_cache(CACHED_NAMES)
def _type_of_name(surface: str, *, is_end: bool = False) -> str:
    """`concept` for a noun phrase of common words, the type by its words for a name; "" for anything else. An end of a
    sentence's statement may be one only with its article: `the flying club`, `the key safe`."""
    has_article = is_end and surface.islower()
    phrase, name = whole_phrase(f"the {surface}" if has_article else surface, MAX_WORDS + has_article), name_of(surface)
    if phrase is None or phrase.grade() == NONE or name in STOP_WORDS or _NO_NAME.search(surface):
        return ""
    if phrase.determiner and not has_article:
        return ""
    if phrase.grade() == NAME and not all(map(is_common_word, phrase.words.words)):
        return kind_of(name, surface) if " " in surface or is_name(surface) or surface.islower() else ""
    verb = verb_of(name)
    is_verb = verb.is_certain or (verb.is_participle and not verb.is_base)
    return "" if is_verb or phrase.is_vague() or not GENERAL.isdisjoint((name, singular(name))) else CONCEPT


def _is_fragment(surface: str) -> bool:
    """Whether words around or before a name make it one of several: a number, an adjective, an owner."""
    first, *others = surface.split()
    lower = [word.lower() for word in (first, *others)]
    if first.islower() and not surface.islower() and ("of" in others or "'s " in surface or "’s " in surface):
        return True
    return bool(others) and (
        first.lower() in QUANTIFIERS | JUDGEMENTS or any(word.isdigit() or word in NUMBERS for word in lower)
    )


def _written(surface: str, entity_type: str) -> str:
    """A concept without the capitals of a heading, or of the beginning of a sentence."""
    words = " ".join(surface.split()).split(" ")
    if entity_type != CONCEPT or not all(word.isalpha() for word in words):
        return " ".join(words)
    return " ".join(word.lower() if word[1:].islower() and is_common_word(word) else word for word in words)


def _named(prepared: PreparedDocument) -> Iterator[tuple[str, _Admitted]]:
    """What is emphasised or repeated, and what the headings and the title name, by name; the surest last. Only a title
    names more than concepts."""
    stressed = {one.name: one.surface for one in prepared.mentions if one.kind == CONCEPT and " " in one.name}
    for name, surface in stressed.items():
        is_clause = _is_command(surface) or name.rpartition(" ")[2] in THIRD_PERSONS
        if not is_clause and _type_of_name(surface) == CONCEPT and not _is_fragment(surface):
            yield name, _Admitted(_written(surface, CONCEPT), CONCEPT, {"stressed"})
    for _, heading in topic_headings(prepared.chunked.sections):
        if _type_of_name(heading) == CONCEPT and not _is_command(heading):
            yield name_of(heading), _Admitted(_written(heading, CONCEPT), CONCEPT, {"heading"})
    for each in prepared.about:
        kind = _type_of_name(each.surface) if each.weight >= 1 and not _is_command(each.surface) else ""
        if kind:
            yield name_of(each.surface), _Admitted(_written(each.surface, kind), kind, {"title"})


def _is_command(surface: str) -> bool:
    """Whether a heading or a title says what to do: `Rotate tokens`, `Add a built-in type`."""
    words = surface.lower().split()
    verb = verb_of(words[0])
    is_verb = any(form.is_base for form in VERB_FORMS.get(words[0], ()))
    return len(words) > 1 and ((verb.is_base and verb.is_certain) or (is_verb and singular(words[-1]) != words[-1]))


def _places(prepared: PreparedDocument, terms: Mapping[str, str]) -> dict[str, dict[int, list[Name]]]:
    """{name: {chunk: occurrences}} of the terms, {name: surface}, in singular and plural; offsets in the document."""
    written = {" ".join(tokens_of(form).words): surface for surface in terms.values() for form in _forms(surface)}
    found: dict[str, dict[int, list[Name]]] = defaultdict(lambda: defaultdict(list))
    reached = 0
    for chunk in prepared.chunked.chunks:
        for each in occurrences(chunk.text, tokens_of(chunk.text), written):
            if chunk.start + each.start >= reached:
                found[each.name][chunk.ordinal].append(each._replace(start=chunk.start + each.start))
        reached = max(reached, chunk.end)
    return found


def _forms(surface: str) -> Iterator[str]:
    yield surface
    if surface.rpartition(" ")[2].islower() and surface[-1].isalpha():
        yield singular(surface) if singular(surface) != surface else plural(surface)


def _mentions(
    prepared: PreparedDocument, admitted: Mapping[str, _Admitted], places: Mapping[str, Mapping[int, list[Name]]]
) -> Iterator[EntityMention]:
    chunks: dict[int, list[EntityMention]] = defaultdict(list)
    for name, each in sorted(admitted.items()):
        found = places.get(name, {})
        surface = _commonest(each, [one.surface for ones in found.values() for one in ones])
        for chunk in sorted({*each.stated, *found}):
            ones = found.get(chunk, [])
            sentences = {prepared.sentence_at(one.start) for one in ones} | each.stated.get(chunk, set())
            named = chunk, name, surface, max(1, len(ones)), tuple(sorted(sentences))
            chunks[chunk].append(EntityMention(*named, each.entity_type, each.confidence))
    for chunk in sorted(chunks):
        yield from sorted(chunks[chunk], key=lambda one: (-one.confidence, one.name))[:MAX_MENTIONS_PER_CHUNK]


def _commonest(admitted: _Admitted, surfaces: Sequence[str]) -> str:
    """How the text writes a concept: in lower case where it does so anywhere, for a heading and the beginning of a
    sentence do not."""
    written = [surface for surface in surfaces if surface.islower()]
    if admitted.entity_type != CONCEPT or not written:
        return admitted.surface
    return min(set(written), key=lambda surface: (-written.count(surface), surface))
