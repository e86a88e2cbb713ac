"""What may be left out of a self-contained sentence: cloze items (Taylor 1953, "Cloze Procedure")."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from indexer.extraction.lexicon import SENTENCE_STARTERS, STOP_WORDS
from indexer.text_analysis import query_terms
from query_api.entities.description import DEFINING
from query_api.study.material import StudyMaterial, StudySentence
from query_api.study.sentences import is_self_contained
from schemas.graph_delta import LITERAL_TYPES
from schemas.predicates import ALIAS

MOST_ANSWER_WORDS = 5
LEAST_LEFT = 4  # content words beside the answer
LEAST_CONFIDENCE = 0.6  # of a mention that is in no fact
EASY_WORDS, LONG, BRACKETS = 25, 0.03, 0.3  # what it is worth less for each word more, and for brackets
DEFINITION, STATED, ABOUT, NAMED, LITERAL = 1.0, 0.75, 0.5, 0.5, 0.25  # what an item is worth more for each, or less
OTHER, MOST_OTHERS = 0.1, 5  # for each other name in the sentence
UNNAMED_TYPES = ("concept", "thing")

_WORD = re.compile(r"\w+(?:[-'’.]\w+)*")
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|its|their|him|them)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:(?:The|An?) )?$")
_DEFINES = re.compile(r" (?:\([^()]*\) )?(?:is|are|was|were) (?:an?|the|one of) ")
_DETERMINER = re.compile(r"\b(?:the|an?|his|her|its|their) $", re.IGNORECASE)
_NOUN = re.compile(r" ([a-z]+)")
_QUANTITY = re.compile(r"(?<![\w.,:/+#$€£-])\d+(?:[.,]\d+)*(?= ?%| (?:[a-z]+ )?[a-z]+[^\Ws]s\b)")
_DIGITS, _NAME_BEFORE = re.compile(r"\d+"), re.compile(r"[A-Z][\w.]* $")
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|do|did|can|could|may|might|must|shall|should|will|would)\b(?! to be\b)"
)


class Cloze(NamedTuple):
    """A sentence without `text[start:end]`, which is a quantity, or names the entity of this row; `concept` is the row
    of what the sentence is about."""

    sentence: StudySentence
    row: int | None
    concept: int
    start: int
    end: int
    worth: float

    @property
    def answer(self) -> str:
        return self.sentence.text[self.start : self.end]

    def with_blank(self, blank: str) -> str:
        return self.sentence.text[: self.start] + blank + self.sentence.text[self.end :]


def clozes(material: StudyMaterial) -> list[Cloze]:
    """All that the material allows, the best first."""
    found = [each for one in material.sentences() if is_self_contained(one.text) for each in _of(material, one)]
    return sorted(found, key=lambda each: (-each.worth, each.sentence.text, each.start))


def _of(material: StudyMaterial, sentence: StudySentence) -> Iterator[Cloze]:
    text, type_of = sentence.text, material.catalogue.type_of
    rows = {each.surface: material.catalogue.row_of(each.entity) for each in sentence.mentions}
    kinds = {each.surface: each.type for each in sentence.mentions}
    names = [surface for surface in rows if is_name(surface, kinds[surface]) and kinds[surface] not in LITERAL_TYPES]
    facts = [fact for fact in sentence.facts if fact.predicate != ALIAS]
    known = [row for surface in names or rows if (row := rows[surface]) is not None]
    if not known or not (facts or _FINITE.search(text)):
        return
    if _PRONOUN.search(text, 0, min(map(text.index, names or rows)) if facts else len(text)):
        return
    central = max(known, key=lambda row: (material.centrality(row), -row))
    defined = {fact.subject.surface: fact.subject.row for fact in facts if fact.predicate == DEFINING}
    defined |= {each: rows[each] for each in rows if _is_defined(text, each)}
    stated = {end.surface: end.row for fact in facts if fact.predicate != DEFINING for end in fact.ends}
    sure = {each.surface for each in sentence.mentions if each.confidence >= LEAST_CONFIDENCE}
    ease = -LONG * max(0, len(text.split()) - EASY_WORDS) - BRACKETS * ("(" in text or "[" in text)
    for surface, row in {**rows, **stated, **defined}.items():
        span = _only_place(text, surface)
        if row is None or span is None or not _may_be_missing(text, *span):
            continue
        if type_of(row) == "place" and _is_attribute(text, *span):
            continue
        kind, others = type_of(row), sum(each not in surface and surface not in each for each in names)
        is_defined, is_stated, named = surface in defined, surface in stated, is_name(surface, kind)
        if not is_defined and not (others and named and (is_stated or surface in sure)):
            continue
        subject = next((fact.subject.row for fact in facts if fact.subject.row is not None), central)
        concept = row if is_defined else subject
        worth = ease + DEFINITION * is_defined + STATED * (is_stated or is_defined) + NAMED * named
        worth += OTHER * min(MOST_OTHERS, others) - LITERAL * (kind in LITERAL_TYPES)
        worth += ABOUT * (concept in material.subjects(sentence.chunk.key)) + material.centrality(concept)
        yield Cloze(sentence, row, concept, *span, worth)
    quantities = list(_QUANTITY.finditer(text, 1))
    if len(quantities) == len(_DIGITS.findall(text)) == 1 and not _NAME_BEFORE.search(text, 0, quantities[0].start()):
        yield Cloze(sentence, None, central, *quantities[0].span(), ease + STATED + material.centrality(central))


def is_name(surface: str, kind: str) -> bool:
    """Whether it is written as a name: with a capital or a digit, of several words in the first; of a concept, which
    may be the first word of a sentence, not only as its first letter."""
    written = surface[1:] if kind in UNNAMED_TYPES else surface
    begins = not surface[:1].islower() or " " not in surface
    return begins and (any(map(str.isupper, written)) or any(map(str.isdigit, written)))


def _is_defined(text: str, surface: str) -> bool:
    """Whether the sentence begins with it and says what it is."""
    at = text.find(surface)
    return (
        at <= len("The ")
        and _ARTICLE.match(text[:at]) is not None
        and _DEFINES.match(text, at + len(surface)) is not None
    )


def _is_attribute(text: str, start: int, end: int) -> bool:
    """Whether it is between an article and a noun, as the name of a people does."""
    after = _NOUN.match(text, end)
    return _DETERMINER.search(text, 0, start) is not None and after is not None and after[1] not in STOP_WORDS


def _only_place(text: str, surface: str) -> tuple[int, int] | None:
    """Where the text has it as whole words, if once."""
    places = [each.span() for each in re.finditer(rf"(?<![\w-]){re.escape(surface)}(?![\w-])", text, re.IGNORECASE)]
    return places[0] if len(places) == 1 else None


def _may_be_missing(text: str, start: int, end: int) -> bool:
    """Whether what is left says enough and does not give it away: no word of it, no initials of it, and no more of the
    same name around it."""
    answer, left = text[start:end], f"{text[:start]} {text[end:]}"
    words = answer.split()
    if len(words) > MOST_ANSWER_WORDS or words[0].lower() in STOP_WORDS or not answer[-1].isalnum():
        return False
    terms = set(query_terms(left))
    if terms & set(query_terms(answer)) or len(terms) < LEAST_LEFT:
        return False
    initials = initials_of(answer)
    if len(initials) > 1 and re.search(rf"\b{re.escape(initials)}s?\b", left.upper()):
        return False
    if re.search(r"\(\s*$", text[:start]) or (answer.isupper() and answer in initials_of(left)):
        return False
    before = re.search(r"(\S+) $", text[:start])
    is_begun = before is not None and before[1][0].isupper() and before[1].lower() not in SENTENCE_STARTERS
    is_continued = re.match(r"(?:['’]s)? (?:of )?(?:the )?[\"“]?[^\W\d_a-z]", text[end:]) is not None
    return not (any(map(str.isupper, answer)) and (is_begun or is_continued))


def initials_of(text: str) -> str:
    """The first letters of its words, in capitals."""
    return "".join(word[0] for word in _WORD.findall(text)).upper()
