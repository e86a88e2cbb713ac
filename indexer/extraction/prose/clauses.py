"""Facts of the clauses of a sentence: the verb groups, each with its subjects and its objects.

What is negated, asked, commanded, reported (`we say that`), or only possible (`may use`, `if`) is not a fact. The
passive is turned round.
"""

import re
from collections.abc import Iterator

from indexer.extraction.lexicon import word_set
from indexer.extraction.prose.copulas import copula_facts, work_facts
from indexer.extraction.prose.facts import LEMMA_CONFIDENCE, TIME, TYPED_CONFIDENCE, Fact, confidence_of
from indexer.extraction.prose.noun_phrases import (
    BARE,
    DEFINITE,
    NAME,
    NONE,
    NounPhrase,
    Words,
    phrase_after,
    phrases_after,
)
from indexer.extraction.prose.open_verbs import verb_of
from indexer.extraction.prose.predicates import BEYOND_OBJECT, GIVING, NAMING, VERB_FORMS, Relation
from indexer.extraction.prose.subjects import Subjects
from indexer.extraction.prose.verb_groups import FINITE, VerbGroup, VerbGroups
from indexer.extraction.prose.word_classes import PREPOSITIONS, is_gerund
from schemas.predicates import ALIAS

_BEYOND_OBJECT = word_set("from with into onto under through against")  # more often of the verb than of its object
_POSSIBLE = word_set(
    "if unless whether suppose imagine assume assuming e.g. eg pretend perhaps maybe supposedly allegedly reportedly"
)
_WITH_DEFINITE_OBJECT = word_set(
    "works_for leads manages part_of member_of married_to born_in died_in located_in follows succeeds"
)
_BEFORE_GIVEN = word_set("the a an its their his her")
_LETTING = word_set("makes allows enables lets helps keeps gets takes assumes")  # `makes arrays take precedence`
_MUTUAL = word_set("married_to meets")
_WITH_PLACE = word_set("founded_by created_by built_by acquires married_to signs designed_by invented_by launches")
_WITH_TIME = {
    "released_in": "released_in", "founded_in": "founded_in", "created_in": "created_in", "built_in": "built_in",
    "born_in": "born_on", "died_in": "died_on", "opened_in": "opened_in", "opened_on": "opened_in",
}  # fmt: skip
_TIME_AFTER = re.compile(rf",? (?:in|on|since|until|from|around) ({TIME.pattern})")
_TIME_FIRST = re.compile(rf"(?:In|On|Since|Until|Around) ({TIME.pattern})")


def is_factual(words: Words) -> bool:
    """Whether a sentence may state facts: it asks nothing, and supposes nothing."""
    is_inverted = words.at(0) in ("had", "were", "should")  # `Had Ann married Ben, the mill would still be hers.`
    return words.at(len(words) - 1) != "?" and not is_inverted and _POSSIBLE.isdisjoint(words.lower)


def clause_facts(words: Words) -> Iterator[Fact]:
    """The facts of the sentence's verbs, from left to right."""
    reader = _ClauseReader(words)
    end = 0
    for at, word in enumerate(words.lower):
        group = reader.groups.at(at) if at >= end and word[0].isalpha() else None
        if group is not None:
            end = group.end
            yield from reader.facts_of(group)


class _ClauseReader:
    """Reads the verbs of a sentence from left to right."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._subjects = Subjects(words)
        self.groups = VerbGroups(words, self._subjects)
        opening = _TIME_FIRST.match(words.text, words.starts[0]) if len(words) else None
        self._opening_time = opening[1] if opening else ""

    def facts_of(self, group: VerbGroup) -> Iterator[Fact]:
        """The facts of a verb group with each of its subjects and objects."""
        words, found = self._words, self._subjects
        subjects = self._described(group) if group.is_reduced else found.before(group.begin, group.is_plural)
        if subjects and words.lower[group.begin] in FINITE:
            found.latest = subjects
        if group.is_copula:
            yield from self._copula(group, subjects)
        elif (
            group.relation and group.relation.predicate in _MUTUAL and len(subjects) > 1 and self._has_no_object(group)
        ):
            first, second = (each.surface for each in subjects[:2])
            yield Fact(group.relation.predicate, first, second, confidence_of(*subjects[:2]))
        elif group.relation and group.onto < len(words):
            time = "" if group.is_reduced else self._opening_time
            yield from self._related(group, group.relation, subjects, time)

    def _has_no_object(self, group: VerbGroup) -> bool:
        """`Ann and Ben married in 1954`."""
        following = self._words.at(group.end)
        return not following[:1].isalnum() or following in PREPOSITIONS

    def _described(self, group: VerbGroup) -> list[NounPhrase]:
        """What a participle describes; `released in` after `X is a Y` is of X, whatever is between."""
        found = self._subjects
        is_dated = group.relation and group.relation.predicate in _WITH_TIME and found.complement_end >= 0
        return found.latest if is_dated else found.described(group.begin)

    def _copula(self, group: VerbGroup, subjects: list[NounPhrase]) -> Iterator[Fact]:
        complement = phrase_after(self._words, group.onto) if subjects else None
        if complement is not None:
            self._subjects.complement_end = complement.high
            for subject in subjects:
                yield from copula_facts(self._words.lower[group.begin], subject, complement)
                yield from work_facts(subject, complement)

    def _related(
        self, group: VerbGroup, relation: Relation, subjects: list[NounPhrase], opening_time: str
    ) -> Iterator[Fact]:
        words, onto = self._words, group.onto
        time = TIME.match(words.text, words.starts[onto])
        if time and relation.predicate in _WITH_TIME:
            named = [subject.surface for subject in subjects if subject.grade() == NAME]
            yield from (Fact(_WITH_TIME[relation.predicate], each, time.group(), TYPED_CONFIDENCE) for each in named)
        objects = self._objects(onto) if subjects and words.at(onto - 1) not in ("less", "least") else []
        yield from self._by_agent(group, subjects, objects)
        if time or relation.predicate == "released_in" or not objects:
            return
        yield from self._between_objects(relation, onto)
        if relation.predicate in NAMING:
            objects[0] = _name_first(objects[0])
        if relation.predicate in GIVING and objects[0].after in _BEFORE_GIVEN:
            yield from self._given(relation.predicate, objects.pop(0), subjects)
        is_certain = group.is_open or verb_of(words.at(group.end - 1)).is_certain
        if objects and (is_certain or not _is_doubtful(objects[0], relation)):
            more = self._further(relation.predicate, objects[-1].high, opening_time)
            yield from self._beyond(relation, objects[-1], subjects)
            for subject in subjects:
                for target in objects:
                    if _is_fact(relation, subject, target, is_open=is_certain):
                        yield _fact(relation, subject, target, more)

    def _by_agent(self, group: VerbGroup, subjects: list[NounPhrase], objects: list[NounPhrase]) -> Iterator[Fact]:
        """`sells` of `The mill was sold to Ann by Ben`."""
        if group.agent and objects and objects[-1].after == "by" and objects[-1].high + 1 < len(self._words):
            agent = group._replace(onto=objects[-1].high + 1, agent=None)
            yield from self._related(agent, group.agent, subjects, self._opening_time)

    def _beyond(self, relation: Relation, target: NounPhrase, subjects: list[NounPhrase]) -> Iterator[Fact]:
        """`buys_from` of `Ann buys oats from Ben`."""
        words = self._words
        predicate = BEYOND_OBJECT.get((relation.predicate, target.after))
        if predicate is None and target.after in _BEYOND_OBJECT and "_" not in relation.predicate:
            predicate = f"{relation.predicate}_{target.after}"
        is_object = target.determiner != "that" and not is_gerund(words.lower[target.low])  # `ensures that`
        is_stated = predicate and is_object and not self.groups.is_infinitive(target.high)
        other = phrase_after(words, target.high + 1) if is_stated else None
        for subject in subjects if predicate and other else ():
            is_named = subject.grade() >= DEFINITE or subject.is_generic
            is_specific = other is not None and (
                other.grade() >= DEFINITE or (other.grade() == BARE and other.size > 1)
            )
            if predicate and other and is_named and is_specific:
                yield Fact(predicate, subject.surface, other.surface, LEMMA_CONFIDENCE)

    def _given(self, predicate: str, to: NounPhrase, subjects: list[NounPhrase]) -> Iterator[Fact]:
        """`gives` and `gives_to` of `Ann gave the chapel its bell`."""
        given = phrase_after(self._words, to.high)
        if given is None or not given.has_head() or given.is_vague() or given.after == ",":
            return
        for subject in subjects:
            if subject.grade() >= DEFINITE or subject.is_generic:
                yield Fact(predicate, subject.surface, given.surface, LEMMA_CONFIDENCE)
                if to.grade() >= DEFINITE:
                    yield Fact(f"{predicate}_to", subject.surface, to.surface, LEMMA_CONFIDENCE)

    def _between_objects(self, relation: Relation, onto: int) -> Iterator[Fact]:
        """`introduced_to` of `Ann introduced Ben to Cara`."""
        words = self._words
        first = phrase_after(words, onto) if relation.predicate == "introduces" else None
        second = phrase_after(words, first.high + 1) if first and first.after == "to" else None
        if first and second and first.grade() == NAME == second.grade():
            yield Fact("introduced_to", first.surface, second.surface, TYPED_CONFIDENCE)

    def _objects(self, onto: int) -> list[NounPhrase]:
        """The objects from a word on, also where the preposition is repeated: `builds on B and on C`."""
        words = self._words
        objects = [each for each in phrases_after(words, onto, FINITE) if each.low == onto or not _begins_verb(each)]
        preposition = words.at(onto - 1)
        while objects and preposition in PREPOSITIONS and words.at(objects[-1].high) == "and":
            if words.at(objects[-1].high + 1) != preposition:
                break
            further = phrases_after(words, objects[-1].high + 2, FINITE)
            if not further:
                break
            objects += further
        return objects

    def _further(self, predicate: str, after: int, opening_time: str) -> tuple[tuple[str, str], ...]:
        """The time and the place that follow the last object, or the time that opens the sentence."""
        words = self._words
        found = {"time": opening_time} if opening_time else {}
        time = _TIME_AFTER.match(words.text, words.ends[after - 1])
        if time:
            found["time"] = time[1]
        elif words.at(after) in ("in", "at") and predicate in _WITH_PLACE:
            place = phrase_after(words, after + 1)
            if place is not None and place.is_name():
                found["place"] = place.surface
                time = _TIME_AFTER.match(words.text, words.ends[place.high - 1])
                found |= {"time": time[1]} if time else {}
        return tuple(sorted(found.items()))


def _name_first(phrase: NounPhrase) -> NounPhrase:
    """`Ann Bell` of `Ann Bell treasurer`."""
    high = next((at for at in range(phrase.low, phrase.high) if not phrase.words.is_capital(at)), phrase.high)
    return (
        phrase
        if high == phrase.low or phrase.determiner
        else NounPhrase(phrase.words, phrase.begin, phrase.low, high, "")
    )


def _begins_verb(phrase: NounPhrase) -> bool:
    """Whether what looks like one more object is the verb that shares the subject: `fixes bugs and adds support`."""
    verb = verb_of(phrase.words.lower[phrase.low])
    return not phrase.determiner and verb.is_certain and verb.is_third


def _is_doubtful(target: NounPhrase, relation: Relation) -> bool:
    """Whether the object may be a verb (`designs continue to`), or its verb may be none (`register command`)."""
    words, first = target.words, target.words.lower[target.low]
    if target.after in ("a", "an", "the"):
        return True  # `offers them a way`
    if target.determiner or words.is_capital(target.low):
        return False
    is_verb = first in VERB_FORMS and (words.at(target.low - 1) == "to" or target.size == 1)
    is_weak = not relation.is_typed and target.grade() == BARE and "_" not in relation.predicate
    return is_verb or is_weak or (target.size == 1 and target.after == "to")


def _is_fact(relation: Relation, subject: NounPhrase, target: NounPhrase, *, is_open: bool) -> bool:
    """Whether both ends name something: a name each, or one and a definite phrase; of firm relations less will do."""
    of_subject, of_target = subject.grade(), target.grade()
    is_described = target.determiner in ("a", "an") and target.size > 1  # `belongs to a leasing company`
    if NONE in (of_subject, of_target) or not _suits(relation, of_subject, max(of_target, int(is_described))):
        return False
    if of_subject == BARE and subject.is_generic:
        return True
    if of_subject == BARE and (of_target < NAME or not (subject.begin == 0 or subject.determiner)):
        return False
    has_parts = relation.predicate == "part_of" and relation.is_inverse  # `consists of a reader and a splitter`
    if max(of_subject, of_target) < NAME and not has_parts:
        is_whole = "_" in relation.predicate or relation.is_typed or relation.is_inverse
        is_specific = relation.predicate not in _LETTING and (target.size > 1 or target.is_plural)
        return of_subject == DEFINITE and (is_whole or is_specific or of_target == DEFINITE)
    return of_subject + of_target >= (1 if has_parts else 2 if relation.is_typed or is_open else 3)


def _suits(relation: Relation, of_subject: int, of_target: int) -> bool:
    """Whether the ends are named as well as the predicate requires."""
    if relation.predicate == ALIAS:
        return of_target == NAME
    if relation.predicate == "founded_by":
        return BARE not in (of_subject, of_target)
    return relation.predicate not in _WITH_DEFINITE_OBJECT or of_target != BARE or relation.is_inverse


def _fact(relation: Relation, subject: NounPhrase, target: NounPhrase, more: tuple[tuple[str, str], ...]) -> Fact:
    first, second = (target, subject) if relation.is_inverse else (subject, target)
    confidence = confidence_of(subject, target) if relation.is_typed else LEMMA_CONFIDENCE
    return Fact(relation.predicate, first.surface, second.surface, confidence, more=more)
