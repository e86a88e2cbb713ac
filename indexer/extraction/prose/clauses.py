"""Facts of the clauses of a sentence: the verb groups, each with its subjects and its objects.

What is negated, asked, commanded, reported (`we say that`), or only possible (`may use`, `if`) is no fact. The passive
is turned round.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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
    phrase_before,
    phrases_after,
)
from indexer.extraction.prose.open_verbs import OpenVerb, open_verbs
from indexer.extraction.prose.predicates import (
    ADJECTIVES,
    BEYOND_OBJECT,
    THIRD_PERSONS,
    VERB_FORMS,
    Relation,
    VerbForm,
    active_relation,
    passive_relation,
)
from indexer.extraction.prose.subjects import RELATIVES, Subjects
from indexer.extraction.prose.word_classes import (
    BE,
    CONJUNCTIONS,
    DETERMINERS,
    JUDGEMENTS,
    MODALS,
    NEGATIONS,
    PAST_VERBS,
    PREPOSITIONS,
    QUANTIFIERS,
    SUBORDINATORS,
    VAGUE,
    is_adverb,
    is_gerund,
    is_open,
    is_participle,
    singular,
)

_ARTICLES = ("the", "a", "an", "its", "their", "his", "her", "our")
_OPEN_PREPOSITIONS = word_set(
    """to in on with from for at into onto under through against along across around behind beside beneath near past
    towards within above below between among alongside opposite"""
)
_COMPOUND_PREPOSITIONS = {("next", "to"), ("out", "of"), ("because", "of")}
_PARTICLES = word_set("over up out off down back away")  # `takes over`, `grew up in`
_BEYOND_OBJECT = word_set("from with into onto under through against")  # more often of the verb than of its object
_FINITE_BE = word_set("is are was were")
_HAVE = word_set("has have had")
_DO = word_set("do does did")
_PLURAL = word_set("are were have had")
_POSSIBLE = word_set(
    "if unless whether suppose imagine assume assuming e.g. eg pretend perhaps maybe supposedly allegedly reportedly"
)
_NOT_BEFORE_VERB = word_set("to the a an of 's ’s")
_WITH_DEFINITE_OBJECT = word_set(
    "works_for leads manages part_of member_of married_to born_in died_in located_in follows succeeds"
)
_MUTUAL = word_set("married_to meets")
_AFTER_PARTICIPLE = word_set(
    "by to with from into in on at under"
)  # `is wired to`; `used to` and `related to` are of other classes
_WITH_PLACE = word_set("founded_by created_by built_by acquires married_to signs designed_by invented_by launches")
_WITH_TIME = {
    "released_in": "released_in", "founded_in": "founded_in", "created_in": "created_in", "built_in": "built_in",
    "born_in": "born_on", "died_in": "died_on", "opened_in": "opened_in", "opened_on": "opened_in",
}  # fmt: skip
_FINITE = THIRD_PERSONS | BE | MODALS | _HAVE | _DO
_BOUNDARIES = RELATIVES | SUBORDINATORS | {",", ";", ":", "-", "–", "(", "and", "but", "or"}
_OPENING_GROUP = _FINITE_BE | _HAVE | _DO | MODALS | VERB_FORMS.keys()  # words that may begin a verb group
_ENDING_GROUP = ("n't", "n’t", "ed")  # of others that may
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
        if at >= end and word[0].isalpha():
            is_known = word in _OPENING_GROUP or word.endswith(_ENDING_GROUP)
            group = reader.group_at(at) if is_known else None
            if group is None or not (group.is_copula or (group.relation and group.relation.is_typed)):
                group = reader.open_group_at(at) or group
            if group is not None:
                end = group.end
                yield from reader.facts_of(group)


class _Group(NamedTuple):
    """A verb group: its first word, the word after it, what it relates, and where its objects begin."""

    begin: int
    end: int
    relation: Relation | None = None
    onto: int = 0
    is_plural: bool = False
    is_copula: bool = False
    is_reduced: bool = False  # a participle that follows what it describes, without `is`
    is_open: bool = False  # of a verb that has no predicate of its own


class _ClauseReader:
    """Reads the verbs of a sentence from left to right."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._subjects = Subjects(words)
        opening = _TIME_FIRST.match(words.text, words.starts[0]) if len(words) else None
        self._opening_time = opening[1] if opening else ""

    def group_at(self, at: int) -> _Group | None:
        """The verb group that begins at an index."""
        word = self._words.lower[at]
        if word in MODALS or word in _DO or word.endswith(("n't", "n’t")):
            return _Group(at, at + 1, is_plural=True)
        if word in _FINITE_BE:
            return self._with_be(at)
        if word in _HAVE:
            return self._perfect(at)
        if word in VERB_FORMS:
            return self._alone(at)
        if word.endswith("ed") and self._words.at(at + 1) == "by":
            return _Group(at, at + 1, Relation(f"{word}_by", is_typed=False), at + 2, is_reduced=True)
        return None

    def open_group_at(self, at: int) -> _Group | None:
        """The group of a verb that has no predicate of its own: a word between a noun phrase and what may be its
        object, in a form that agrees with the phrase (`The heron stalks the frog.`)."""
        words, word = self._words, self._words.lower[at]
        verb = open_verbs().get(word)
        if verb is None or at == 0 or words.is_capital(at) or not (is_open(word) or word in PAST_VERBS):
            return None
        subject, onward = phrase_before(words, self._subjects.after_subject(at)), words.after_adverbs(at + 1)
        preposition = self._preposition(onward)
        target = phrase_after(words, onward + len(preposition))
        if subject is None or target is None or not self._agrees(verb, subject) or not _ends_object(target):
            return None
        if _is_clause(subject) or not self._is_verb(at, verb, subject, target, preposition[-1:]):
            return None
        return self._open_group(at, at, not verb.is_third, verb.third)

    def _agrees(self, verb: OpenVerb, subject: NounPhrase) -> bool:
        """Whether a finite form fits a subject: `owls eat`, `the owl eats`, `it ate`."""
        is_plural = subject.is_plural and subject.grade() != NAME
        return (
            verb.is_past
            or (verb.is_third and not is_plural)
            or (verb.is_base and (is_plural or subject.before == "and"))
        )

    def _preposition(self, at: int) -> tuple[str, ...]:
        """The words of the preposition at an index, also of two (`next to`, `up in`)."""
        one, two = self._words.at(at), self._words.at(at + 1)
        if (one, two) in _COMPOUND_PREPOSITIONS or (one in _PARTICLES and two in _OPEN_PREPOSITIONS):
            return one, two
        return (one,) if one in _OPEN_PREPOSITIONS else ()

    def _is_verb(
        self, at: int, verb: OpenVerb, subject: NounPhrase, target: NounPhrase, preposition: Sequence[str]
    ) -> bool:
        """Whether a form that may be a noun or a participle, too, is a finite verb here: what comes after it begins an
        object, or the clause has no other verb."""
        words = self._words
        is_bare = not (target.determiner or words.is_capital(target.low))
        if is_bare and _is_verb_rather(verb, subject, target, preposition):
            return False
        if verb.is_certain and (verb.is_base or verb.is_third):
            return True
        is_loose = is_bare and verb.is_third and subject.grade() < DEFINITE
        if (is_loose and singular(words.lower[at]) in VAGUE) or words.lower[at] in JUDGEMENTS:
            return False  # `line numbers for debugging`, `browsers hold long connections`
        is_whole = subject.begin == 0 or subject.grade() >= DEFINITE or subject.is_generic
        if preposition:
            inner = words.lower[subject.low : subject.high - 1]
            is_compound = subject.is_generic and bool(inner) and verb.is_third and not any(map(_is_plural, inner))
            is_subject = (
                subject.determiner or subject.grade() == NAME or (verb.is_base and subject.is_plural) or is_compound
            )
            return is_whole and bool(is_subject) and self._is_only_verb(at)
        is_marked = target.determiner in _ARTICLES or (target.grade() == NAME and not words.is_capital(at - 1))
        return is_whole and (is_marked or self._is_only_verb(at))

    def _is_infinitive(self, at: int) -> bool:
        following = open_verbs().get(self._words.at(at + 1))
        return self._words.at(at) == "to" and following is not None and following.is_base

    def _is_only_verb(self, at: int) -> bool:
        lower = self._words.lower
        low = max((low + 1 for low in range(at) if lower[low] in _BOUNDARIES), default=0)
        high = next((high for high in range(at, len(lower)) if lower[high] in _BOUNDARIES), len(lower))
        others = (lower[other] for other in range(low, high) if other != at)
        is_other = any(word in _FINITE or word in PAST_VERBS for word in others)
        return not (is_other or any(map(_is_past, lower[low:at])))

    def facts_of(self, group: _Group) -> Iterator[Fact]:
        """The facts of a verb group with each of its subjects and objects."""
        words, found = self._words, self._subjects
        subjects = self._described(group) if group.is_reduced else found.before(group.begin, group.is_plural)
        if subjects and words.lower[group.begin] in _FINITE:
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

    def _has_no_object(self, group: _Group) -> bool:
        """`Ann and Ben married in 1954`."""
        following = self._words.at(group.end)
        return not following[:1].isalnum() or following in PREPOSITIONS

    def _described(self, group: _Group) -> list[NounPhrase]:
        """What a participle describes; `released in` after `X is a Y` is of X, whatever is between."""
        found = self._subjects
        is_dated = group.relation and group.relation.predicate in _WITH_TIME and found.complement_end >= 0
        return found.latest if is_dated else found.described(group.begin)

    def _with_be(self, begin: int) -> _Group:
        words, is_plural = self._words, self._words.lower[begin] in _PLURAL
        at = words.after_adverbs(begin + 1)
        if words.at(at) in NEGATIONS:
            return _Group(begin, at + 1, is_plural=is_plural)
        return self._after_be(begin, at, is_plural)

    def _perfect(self, begin: int) -> _Group:
        words = self._words
        is_plural = words.lower[begin] in _PLURAL
        at = words.after_adverbs(begin + 1)
        if words.at(at) == "been":
            return self._after_be(begin, words.after_adverbs(at + 1), is_plural)
        lemmas = _lemmas(VERB_FORMS.get(words.at(at), ()), "is_participle")
        group = self._related_group(begin, at, is_plural, lemmas)
        verb = open_verbs().get(words.at(at))
        if group.relation is None and verb and verb.is_participle:  # `has supervised Ben since May`
            return self._open_group(begin, at, is_plural, verb.third)
        return group

    def _open_group(self, begin: int, at: int, is_plural: bool, third: str) -> _Group:
        """The group whose main verb, at an index, has no predicate of its own but its third person."""
        words, onward = self._words, self._words.after_adverbs(at + 1)
        if not third:
            return _Group(begin, at + 1, is_plural=is_plural)
        preposition = self._preposition(onward) or tuple({words.at(onward)} & _PARTICLES)
        relation = Relation("_".join((third, *preposition)), is_typed=False)
        return _Group(begin, at + 1, relation, onward + len(preposition), is_plural, is_open=True)

    def _after_be(self, begin: int, at: int, is_plural: bool) -> _Group:
        """`is <participle>`, `is <verb>ing`, `is <adjective> <preposition>`, `is a`."""
        words = self._words
        if words.at(at) == "being":
            at = words.after_adverbs(at + 1)
        for phrase, relation in ADJECTIVES.items():
            if tuple(words.lower[at : at + len(phrase)]) == phrase:
                return _Group(begin, at, relation, at + len(phrase), is_plural)
        word = words.at(at)
        if word in DETERMINERS or words.is_capital(at) or word == "one":
            onto = at + (2 if words.at(at + 1) == "of" else 1) * (word == "one")
            return _Group(begin, at, onto=onto, is_plural=is_plural, is_copula=True)
        if word.endswith("ing"):
            group = self._related_group(begin, at, is_plural, _lemmas_of_ing(word)[:1])
            onward = words.after_adverbs(at + 1)
            is_object = words.at(onward) in DETERMINERS or words.is_capital(onward) or words.at(at - 1) == "been"
            is_open_verb = not group.relation and (is_object or words.at(onward) in _PARTICLES)
            return self._open_group(begin, at, is_plural, _third_of_ing(word)) if is_open_verb else group
        group = self._passive(begin, at, is_plural)
        if group.relation is None and is_plural and words.lower[begin] == "are" and _may_be_noun(word):
            return _Group(begin, at, onto=at, is_plural=True, is_copula=True)  # `Slow worms are lizards`
        return group

    def _passive(self, begin: int, at: int, is_plural: bool) -> _Group:
        """The group whose main verb is the participle at an index, if it is one."""
        words, word = self._words, self._words.at(at)
        lemmas = _lemmas(VERB_FORMS.get(word, ()), "is_participle")
        group = self._related_group(begin, at, is_plural, lemmas, is_passive=True)
        preposition, is_phrasal, compound = words.at(at + 1), words.at(at + 2) == "by", self._preposition(at + 1)
        if not _is_past_participle(word, lemmas) or preposition not in PREPOSITIONS:
            return group
        if is_phrasal:  # `is paid for by`
            relation = Relation(f"{word}_{preposition}_by", is_typed=False)
        elif len(compound) == 2 and not self._is_infinitive(at + 2):  # `is driven out of`
            relation = Relation("_".join((word, *compound)), is_typed=False)
        elif group.relation is None and preposition in _AFTER_PARTICIPLE and not self._is_infinitive(at + 1):
            relation = Relation(f"{word}_{preposition}", is_typed=False)
        else:
            return group
        is_longer = is_phrasal or len(compound) == 2
        return _Group(begin, at, relation, at + 2 + is_longer, is_plural, is_open=True)

    def _related_group(
        self, begin: int, at: int, is_plural: bool, lemmas: Iterable[str], is_passive: bool = False
    ) -> _Group:
        """The group whose main verb is at an index, with the relation of the first lemma that states one."""
        words = self._words
        onward = words.after_adverbs(at + 1)
        preposition = words.at(onward) if words.at(onward) in PREPOSITIONS else ""
        relation_of = passive_relation if is_passive else active_relation
        for lemma in lemmas:
            relation = relation_of(lemma, preposition)
            if relation:
                return _Group(begin, at + 1, relation, onward + bool(preposition), is_plural)
        return _Group(begin, at + 1, is_plural=is_plural)

    def _alone(self, at: int) -> _Group | None:
        """A finite verb without an auxiliary, or a participle after what it describes: `a city located in France`."""
        words, forms = self._words, VERB_FORMS[self._words.lower[at]]
        if words.is_capital(at) or at == 0 or words.at(at - 1) in _NOT_BEFORE_VERB:
            return None
        following = words.at(words.after_adverbs(at + 1))
        participles = _lemmas(forms, "is_participle")
        if participles and following in PREPOSITIONS:
            group = self._related_group(at, at, True, participles, is_passive=True)
            is_active = following != "by" and any(
                active_relation(past, following) for past in _lemmas(forms, "is_past")
            )
            if not is_active:
                is_stated = group.relation is not None and (following == "by" or group.relation.is_typed)
                return group._replace(is_reduced=True) if is_stated else None
        finite = _lemmas(forms, "is_third", "is_past")
        if finite:
            return self._related_group(at, at, not _lemmas(forms, "is_third"), finite)
        if self._may_be_base_form(at, following):
            return self._related_group(at, at, True, [form.lemma for form in forms])
        return None

    def _may_be_base_form(self, at: int, following: str) -> bool:
        """Whether what is before a word may be its subject, in the plural: `engineers write`."""
        words = self._words
        begins_object = following in DETERMINERS or words.is_capital(at + 1)
        if words.at(at - 1) in RELATIVES:
            return True
        if words.at(at - 1).endswith("s") and (not words.is_capital(at - 1) or begins_object):
            return True
        return (begins_object or following in PREPOSITIONS) and self._is_joined(at)

    def _is_joined(self, at: int) -> bool:
        """Whether the subject before a verb is two phrases, `Tern and Plover use`; or a plural that a verb shares."""
        if self._words.at(at - 1) in ("and", "or"):
            latest = self._subjects.latest
            return bool(latest) and self._words.at(latest[-1].high - 1).endswith("s")
        phrase = phrase_before(self._words, at)
        return phrase is not None and phrase.before == "and"

    def _copula(self, group: _Group, subjects: list[NounPhrase]) -> Iterator[Fact]:
        complement = phrase_after(self._words, group.onto) if subjects else None
        if complement is not None:
            self._subjects.complement_end = complement.high
            for subject in subjects:
                yield from copula_facts(self._words.lower[group.begin], subject, complement)
                yield from work_facts(subject, complement)

    def _related(
        self, group: _Group, relation: Relation, subjects: list[NounPhrase], opening_time: str
    ) -> Iterator[Fact]:
        words, onto = self._words, group.onto
        time = TIME.match(words.text, words.starts[onto])
        if time and relation.predicate in _WITH_TIME:
            for subject in subjects:
                if subject.grade() == NAME:
                    yield Fact(_WITH_TIME[relation.predicate], subject.surface, time.group(), TYPED_CONFIDENCE)
        if time or relation.predicate == "released_in" or not subjects:
            return
        yield from self._between_objects(relation, onto)
        objects = self._objects(onto)
        verb = open_verbs().get(words.at(group.end - 1))
        is_certain = group.is_open or (verb is not None and verb.is_certain)
        if objects and (is_certain or not _is_doubtful(objects[0], relation)):
            more = self._further(relation.predicate, objects[-1].high, opening_time)
            yield from self._beyond(relation, objects[-1], subjects)
            for subject in subjects:
                for target in objects:
                    if _is_fact(relation, subject, target, is_open=is_certain):
                        yield _fact(relation, subject, target, more)

    def _beyond(self, relation: Relation, target: NounPhrase, subjects: list[NounPhrase]) -> Iterator[Fact]:
        """`buys_from` of `Ann buys oats from Ben`."""
        words = self._words
        predicate = BEYOND_OBJECT.get((relation.predicate, target.after))
        if predicate is None and target.after in _BEYOND_OBJECT and "_" not in relation.predicate:
            predicate = f"{relation.predicate}_{target.after}"
        is_object = target.determiner != "that" and not is_gerund(words.lower[target.low])  # `ensures that`
        is_stated = predicate and is_object and not self._is_infinitive(target.high)
        other = phrase_after(words, target.high + 1) if is_stated else None
        for subject in subjects if predicate and other else ():
            is_named = subject.grade() >= DEFINITE or subject.is_generic
            is_specific = other is not None and (
                other.grade() >= DEFINITE or (other.grade() == BARE and other.size > 1)
            )
            if predicate and other and is_named and is_specific:
                yield Fact(predicate, subject.surface, other.surface, LEMMA_CONFIDENCE)

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
        objects = [each for each in phrases_after(words, onto, _FINITE) if each.low == onto or not _begins_verb(each)]
        preposition = words.at(onto - 1)
        while objects and preposition in PREPOSITIONS and words.at(objects[-1].high) == "and":
            if words.at(objects[-1].high + 1) != preposition:
                break
            further = phrases_after(words, objects[-1].high + 2, _FINITE)
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


def _may_be_noun(word: str) -> bool:
    return is_open(word) and not is_participle(word)


def _is_past_participle(word: str, lemmas: Iterable[str]) -> bool:
    verb = open_verbs().get(word)
    return bool(lemmas) or is_participle(word) or (verb is not None and verb.is_participle)


def _is_clause(phrase: NounPhrase) -> bool:
    """Whether what looks like a subject has a verb and its object in it: `functions accept values`."""
    inner = phrase.words.lower[phrase.low + 1 : phrase.high]
    verbs = (open_verbs().get(word) for word in inner)
    is_verb = any(verb is not None and verb.is_certain and (verb.is_base or verb.is_third) for verb in verbs)
    return is_verb or not QUANTIFIERS.isdisjoint(inner)


def _is_verb_rather(verb: OpenVerb, subject: NounPhrase, target: NounPhrase, preposition: Sequence[str]) -> bool:
    """Whether the word after a form that may be a noun is the verb instead, or its infinitive: `cloud services write`,
    `needs to go`; not `rats dig burrows`, `insurance covers lost luggage`."""
    further = open_verbs().get(target.words.lower[target.low])
    if further is None:
        return False
    is_certain = verb.is_certain and (verb.is_base or verb.is_third)
    is_named = subject.grade() == NAME and subject.size > 1
    is_finite = is_certain or (is_named and target.size > 1 and not further.is_certain)
    if "to" in preposition or (further.is_base and verb.is_third and not (is_finite or preposition)):
        return True
    is_adjective = further.is_participle and target.size > 1 and is_certain
    is_noun = target.size == 1 and not further.is_certain and (verb.is_base or further.is_third or is_certain)
    return (further.is_certain or target.size == 1) and not (is_adjective or is_noun)


def _begins_verb(phrase: NounPhrase) -> bool:
    """Whether what looks like one more object is the verb that shares the subject: `fixes bugs and adds support`."""
    verb = open_verbs().get(phrase.words.lower[phrase.low]) if not phrase.determiner else None
    return verb is not None and verb.is_certain and verb.is_third


def _is_past(word: str) -> bool:
    verb = open_verbs().get(word)
    return verb is not None and verb.is_past and word.endswith("ed")


def _is_plural(word: str) -> bool:
    return singular(word) != word


def _ends_object(target: NounPhrase) -> bool:
    """Whether what follows a phrase shows that it is the object of the verb before, and no subject of its own."""
    following = target.after
    return (
        not following[:1].isalnum() or following in PREPOSITIONS | CONJUNCTIONS | SUBORDINATORS or is_adverb(following)
    )


def _lemmas(forms: Iterable[VerbForm], *kinds: str) -> list[str]:
    """Of the forms that are of one of these kinds."""
    return [form.lemma for form in forms if any(getattr(form, kind) for kind in kinds)]


def _lemmas_of_ing(word: str) -> list[str]:
    stem = word[:-3]
    return [lemma for lemma in (stem, f"{stem}e", stem[:-1]) if _is_lemma(lemma)]


def _third_of_ing(word: str) -> str:
    stem = word[:-3]
    whole, with_e = (stem, f"{stem}e") if stem[-2:].strip("aeiouy") == stem[-2:] else (f"{stem}e", stem)
    found = (open_verbs().get(lemma) for lemma in (whole, with_e, stem[:-1]))  # `singing`, `wading`
    return next((verb.third for verb in found if verb is not None and verb.is_base), "")


def _is_lemma(word: str) -> bool:
    return any(form.is_base for form in VERB_FORMS.get(word, ()))


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
    if NONE in (of_subject, of_target) or not _suits(relation, of_subject, of_target):
        return False
    if of_subject == BARE and subject.is_generic:
        return True
    if of_subject == BARE and (of_target < NAME or not (subject.begin == 0 or subject.determiner)):
        return False
    has_parts = relation.predicate == "part_of" and relation.is_inverse  # `consists of a reader and a splitter`
    if max(of_subject, of_target) < NAME and not has_parts:
        is_firm = relation.is_typed or relation.is_inverse or relation.predicate.endswith("_by")
        return _is_fact_of_common_nouns(relation, subject, target, is_firm=is_firm, is_open=is_open)
    return of_subject + of_target >= (1 if has_parts else 2 if relation.is_typed or is_open else 3)


def _is_fact_of_common_nouns(
    relation: Relation, subject: NounPhrase, target: NounPhrase, *, is_firm: bool, is_open: bool
) -> bool:
    """Whether `the works council approves the shift model` is one: not `the council approves the model`."""
    if subject.grade() != DEFINITE:
        return False
    if is_firm:
        return target.size > 1 or (target.grade() == DEFINITE and subject.size > 1)
    if target.grade() == DEFINITE:
        return target.size > 1 or is_open
    return "_" in relation.predicate


def _suits(relation: Relation, of_subject: int, of_target: int) -> bool:
    """Whether the ends are named as well as the predicate requires."""
    if relation.predicate == "also_known_as":
        return of_target == NAME
    if relation.predicate == "founded_by":
        return BARE not in (of_subject, of_target)
    return relation.predicate not in _WITH_DEFINITE_OBJECT or of_target != BARE or relation.is_inverse


def _fact(relation: Relation, subject: NounPhrase, target: NounPhrase, more: tuple[tuple[str, str], ...]) -> Fact:
    first, second = (target, subject) if relation.is_inverse else (subject, target)
    confidence = confidence_of(subject, target) if relation.is_typed else LEMMA_CONFIDENCE
    return Fact(relation.predicate, first.surface, second.surface, confidence, more=more)
