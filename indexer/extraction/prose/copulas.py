"""What `X is a Y`, `X is the capital of Y` and `the owner of Y is X` state; the same of appositions."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from indexer.extraction.lexicon import PLACE_WORDS, WORK_WORDS, word_set
from indexer.extraction.prose.facts import DEFINITE_CONFIDENCE, TYPED_CONFIDENCE, Fact, confidence_of
from indexer.extraction.prose.noun_phrases import BARE, DEFINITE, NAME, NounPhrase, Words, phrase_after
from indexer.extraction.prose.predicates import NOUN_PREPOSITIONS, NOUNS, Relation
from indexer.extraction.prose.word_classes import singular
from schemas.predicates import IS_A

# Of these only the relation says something.
_ONLY_RELATIONS = word_set("prerequisite precondition requirement dependency variant variation")
_KINDS = word_set("kind type form sort class variety species example instance family genus subclass")
# `the start of the vector` says where something is, not what.
_BOUNDS = word_set(
    """start end beginning rest number length way name result value case reason size part share amount majority lot side
    top bottom middle one fact idea member use point cause order basis"""
)
_SAYING_NOTHING = _BOUNDS | word_set(
    """thing lot must need choice option idea problem mistake step matter question default attempt difference help
        thanks hand turn advantage disadvantage goal purpose issue condition situation detail aspect effect change"""
)
_PLACES = PLACE_WORDS | word_set(
    """municipality commune suburb borough neighborhood neighbourhood state country capital settlement hamlet canton
    prefecture locality ward community archipelago"""
)
_ADJECTIVE = re.compile(
    r"-|(?:al|ous|ive|ic|ful|able|ible|ary|ed|ant|ent)$|^(?:fast|modern|small|simple|new|free|quick)$"
)
MAX_ADJECTIVES = 4
_PAST = ("was", "were")
_WORKS = WORK_WORDS | word_set("single ep poem painting sculpture play musical book novella comic manga game")
_CHAIN_ENDS = frozenset((",", ".", ";", ")", ""))
MAX_CHAINED = 4


class NounRelation(NamedTuple):
    """The relation that a noun states, and the phrase it holds of: `capital of France`, `Beacon's owner`."""

    relation: Relation
    other: NounPhrase


def noun_relation(phrase: NounPhrase) -> NounRelation | None:
    """The relation of a phrase whose head is a noun of relation; the phrase may stop before `to` or `for`."""
    words, lower = phrase.words, phrase.words.lower
    owner = next((at for at in range(phrase.low + 1, phrase.high - 1) if lower[at] in ("'s", "’s")), -1)
    head = phrase.high - 1 if owner >= 0 else phrase.head_index
    noun = singular(words.at(head))
    relation = NOUNS.get(f"{words.at(head - 1)} {noun}") or NOUNS.get(noun)
    other: NounPhrase | None = None
    if owner >= 0:
        other = NounPhrase(words, phrase.begin, phrase.low, owner, phrase.determiner)
    elif words.at(head + 1) in NOUN_PREPOSITIONS:
        other = phrase_after(words, head + 2)
    return NounRelation(relation, other) if relation and other else None


def related(end: NounPhrase, found: NounRelation) -> Iterator[Fact]:
    """The fact that `end` is the noun of the other phrase."""
    is_named = found.other.grade() >= DEFINITE or (found.other.grade() == BARE and found.other.is_described)
    if is_named:
        ends = (end.surface, found.other.surface)
        subject, target = reversed(ends) if found.relation.is_inverse else ends
        yield Fact(found.relation.predicate, subject, target, confidence_of(end, found.other))


def copula_facts(verb: str, subject: NounPhrase, complement: NounPhrase) -> Iterator[Fact]:
    """The facts of `<subject> <verb> <complement>`; the verb is a form of `be`."""
    turned = noun_relation(subject)
    if turned and complement.grade() == NAME and complement.determiner not in ("a", "an"):
        yield from related(complement, turned)
        return
    relation = noun_relation(complement)
    is_article = subject.determiner in ("a", "an") and subject.begin == 0
    if relation and (subject.grade() >= DEFINITE or (subject.grade() == BARE and (is_article or subject.is_generic))):
        yield from related(subject, relation)
        if singular(complement.head) in _ONLY_RELATIONS:
            return
    elif complement.determiner == "the" and complement.has_of and is_kind(complement) and subject.grade() == NAME:
        yield from _of_another(subject, complement)
    if _is_defined(verb, subject, complement):
        yield from kind_facts(subject, complement, is_definition=True)


def _of_another(subject: NounPhrase, complement: NounPhrase) -> Iterator[Fact]:
    """`patron_of` of `Ursula is the patron of the guild`: of a noun that has no predicate of its own."""
    other = phrase_after(complement.words, complement.head_index + 2)
    if other is not None and other.grade() >= DEFINITE and complement.head.isalpha():
        yield Fact(f"{complement.head}_of", subject.surface, other.surface, DEFINITE_CONFIDENCE)


def kind_facts(subject: NounPhrase, complement: NounPhrase, is_definition: bool) -> Iterator[Fact]:
    """`is_a`, if the complement says what something is; and where that is, if it is a place."""
    kind = _kind_named(_after_adjective(complement))
    if kind.is_ranked() and not kind.words.lower[kind.low + 1].endswith("est"):
        kind = NounPhrase(kind.words, kind.begin, kind.low + 1, kind.high, kind.determiner)
        if kind.is_vague():
            return  # `the first time that`
    if is_kind(kind):
        yield Fact(IS_A, subject.surface, kind.surface, confidence_of(subject), is_definition)
        yield from _place_facts(subject, kind)


def _is_defined(verb: str, subject: NounPhrase, complement: NounPhrase) -> bool:
    """Whether `X is Y` says what X is: of a name always, else only of kinds (`a shard is a`, `the lock file is a`)."""
    value = subject.grade()
    is_kind_of_kind = verb == "are" and value == BARE and subject.is_generic and complement.is_plural
    if not complement.determiner and complement.words.at(complement.low - 1) != "of":
        return is_kind_of_kind  # `the owner is Ada`
    if value == NAME:
        return True
    if verb in _PAST or complement.determiner == "the":
        return False
    if subject.determiner in ("a", "an"):
        return value == BARE and subject.begin == 0 and verb == "is"
    return (value == DEFINITE and subject.size > 1) or (value == BARE and subject.is_generic)


def _after_adjective(phrase: NounPhrase) -> NounPhrase:
    """`asynchronous client` of `a high-level, asynchronous client`."""
    for _ in range(MAX_ADJECTIVES):
        if phrase.after != "," or phrase.size > 1 or not _ADJECTIVE.search(phrase.head):
            break
        further = phrase_after(phrase.words, phrase.high + 1)
        if further is None or further.determiner:
            break
        phrase = NounPhrase(phrase.words, further.begin, further.low, further.high, phrase.determiner)
    return phrase


def _kind_named(phrase: NounPhrase) -> NounPhrase:
    """The phrase after `kind of`, `type of`; else the phrase itself."""
    words, head = phrase.words, phrase.head_index
    other = phrase_after(words, head + 2) if words.at(head) in _KINDS and words.at(head + 1) == "of" else None
    return NounPhrase(words, other.begin, other.low, other.high, phrase.determiner) if other else phrase


def is_kind(phrase: NounPhrase) -> bool:
    """Whether a phrase states what something is: its head noun has a meaning."""
    if phrase.determiner not in ("a", "an", "the", "") or not phrase.has_head():
        return False
    if phrase.has_of:
        return phrase.head not in _BOUNDS
    return phrase.head not in _SAYING_NOTHING and not (phrase.size == 1 and phrase.head in _KINDS)


def work_facts(subject: NounPhrase, complement: NounPhrase) -> Iterator[Fact]:
    """`created_by` of `X is an album by Y`."""
    author = phrase_after(complement.words, complement.high + 1) if complement.after == "by" else None
    if complement.head in _WORKS and author and NAME == author.grade() == subject.grade():
        yield Fact("created_by", subject.surface, author.surface, TYPED_CONFIDENCE)


def chained_places(words: Words) -> Iterator[Fact]:
    """`located_in` of each place named after another: `in Okotoks, Alberta, Canada`."""
    for at in range(1, len(words) - 3):
        if words.lower[at] != "in" or at == 0:
            continue
        places = _chain(words, at + 1)
        if 1 < len(places) < MAX_CHAINED and places[-1].after in _CHAIN_ENDS and not _goes_on(places[-1]):
            for inner, outer in pairwise(places):
                yield Fact("located_in", inner.surface, outer.surface, DEFINITE_CONFIDENCE)


def _chain(words: Words, at: int) -> list[NounPhrase]:
    """Names of places one after another, with commas between them."""
    places: list[NounPhrase] = []
    while len(places) < MAX_CHAINED:
        place = phrase_after(words, at)
        if place is None or place.has_of or place.determiner or not _is_place_name(place):
            break
        places.append(place)
        if place.after != ",":
            break
        at = place.high + 1
    return places


def _goes_on(place: NounPhrase) -> bool:
    """Whether an enumeration of places continues after one: `Fiji, Samoa, the Cook Islands and Tonga`."""
    words, onward = place.words, place.high + 1
    joined = words.at(onward) in ("and", "or")
    return place.after == "," and (words.at(onward) == "the" or (joined and words.is_capital(onward + 1)))


def _is_place_name(place: NounPhrase) -> bool:
    """Not `uses Kafka` of `written in Rust, uses Kafka`."""
    return (
        place.grade() == NAME
        and place.words.is_capital(place.low)
        and all(word.isalpha() and word[0].isupper() for word in place.surface.split())
    )


def _place_facts(subject: NounPhrase, kind: NounPhrase) -> Iterator[Fact]:
    """`located_in` of `a city in Ohio, United States`: the city is in Ohio, and Ohio in the United States."""
    words = kind.words
    if kind.head not in _PLACES or subject.grade() != NAME:
        return
    at, inner = words.lower.index("of", kind.low) if kind.has_of else kind.high, subject.surface
    if words.at(at) not in ("in", "of", "on"):
        return
    place = phrase_after(words, at + 1)
    while place is not None and place.is_name():
        yield Fact("located_in", inner, place.surface, TYPED_CONFIDENCE)
        inner = place.surface
        chained = place.after == "," and words.is_capital(place.high + 1)
        place = phrase_after(words, place.high + 1) if chained else None
