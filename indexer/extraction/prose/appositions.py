"""Facts beside a name: `Ada, daughter of Lord Byron,`, `Kafka, a broker,`, `(born 1 May 1900 in Kiel)`."""

import re
from collections.abc import Iterator

from indexer.extraction.prose.copulas import kind_facts, noun_relation, related
from indexer.extraction.prose.facts import TIME, TYPED_CONFIDENCE, Fact
from indexer.extraction.prose.noun_phrases import NAME, NounPhrase, Words, phrase_after, phrase_before, words_of
from indexer.extraction.prose.word_classes import PREPOSITIONS, SUBORDINATORS, is_gerund, is_participle
from schemas.predicates import ALIAS

_ENDS = frozenset((",", ".", ";", ":", ")", "–", "—", "", "who", "which", "that", "in", "from", "at", "on"))
_JOINED = frozenset(("and", "or", "&"))
_NOT_BEFORE = _JOINED | {",", "including", "like", "as", "both"}  # an enumeration
_ALIASES = tuple(
    tuple(phrase.split())
    for phrase in ("also known as", "better known as", "formerly known as", "known as", "also called", "formerly")
)
_POSSESSIVE = frozenset(("'s", "’s"))
_BRACKET = re.compile(r" ?\(([^()]{4,200})\)")
_BORN = re.compile(rf"(?:[^()]*[;,] ?)?(?:born|b\.) (?:on )?({TIME.pattern})(?:,? in (.+))?")
_LIVED = re.compile(
    rf"(?:[^()]*[;,] ?)?(?:born )?({TIME.pattern})(?:,? (?:in )?[^–—-]*)? ?[–—-] ?(?:died )?({TIME.pattern})(?:,? .*)?"
)


def apposition_facts(words: Words) -> Iterator[Fact]:
    """The facts of what a comma sets apart from a name, from left to right."""
    for comma in range(1, len(words) - 1):
        left = phrase_before(words, comma) if words.lower[comma] == "," else None
        if left is None or left.before in _NOT_BEFORE or left.determiner not in ("", "the"):
            continue
        if left.grade() == NAME and not _is_opening(left):
            yield from _beside(left, comma)


def _is_opening(phrase: NounPhrase) -> bool:
    """Whether a phrase only ends what a sentence opens with: `In the United States, a city is`."""
    opening = phrase.words.lower[: phrase.begin]
    if not opening or "," in opening:
        return False
    return opening[0] in PREPOSITIONS | SUBORDINATORS or is_participle(opening[0]) or is_gerund(opening[0])


def _beside(left: NounPhrase, comma: int) -> Iterator[Fact]:
    words = left.words
    alias = next((known for known in _ALIASES if tuple(words.lower[comma + 1 : comma + 1 + len(known)]) == known), ())
    right = phrase_after(words, comma + 1 + len(alias))
    if right is None or right.after in _JOINED or (right.after == "," and words.at(right.high + 1) in _JOINED):
        return  # an enumeration
    if not alias:
        yield from _described(left, right)
    elif right.grade() == NAME:
        yield Fact(ALIAS, left.surface, right.surface, TYPED_CONFIDENCE)


def _described(left: NounPhrase, right: NounPhrase) -> Iterator[Fact]:
    """What one of two phrases says of the other."""
    turned, relation = noun_relation(left), noun_relation(right)
    if turned:
        is_the_one = left.determiner == "the" or not _POSSESSIVE.isdisjoint(left.words.lower[left.low : left.high])
        if is_the_one and right.determiner == "" and right.grade() == NAME and right.after in (",", ".", ""):
            yield from related(right, turned)
    elif relation:
        if right.determiner in ("", "the", "a", "an") and relation.other.after in _ENDS:
            yield from related(left, relation)
    elif right.determiner in ("a", "an") and right.after in _ENDS:
        yield from kind_facts(left, right, is_definition=False)


def life_facts(text: str, start: int, end: int) -> Iterator[Fact]:
    """When and where a person was born and died, as brackets behind a name say it, with `born` or two full dates."""
    for bracket in _BRACKET.finditer(text, start, end):
        content = bracket[1].strip()
        born, lived = _BORN.fullmatch(content), _LIVED.fullmatch(content)
        if not (born or (lived and " " in lived[1] and " " in lived[2])):
            continue
        words = words_of(text, start, bracket.start())
        name = phrase_before(words, len(words))
        if name is None or name.grade() != NAME:
            continue
        person = name.surface
        if born:
            yield Fact("born_on", person, born[1], TYPED_CONFIDENCE)
            if born[2] and born[2][0].isupper():
                yield Fact("born_in", person, born[2].split(",")[0].strip(), TYPED_CONFIDENCE)
        elif lived:
            yield Fact("born_on", person, lived[1], TYPED_CONFIDENCE)
            yield Fact("died_on", person, lived[2], TYPED_CONFIDENCE)
