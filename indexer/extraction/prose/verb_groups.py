"""The verb groups of a sentence: its verbs with their auxiliaries, what each relates, and where its objects begin.

What is negated, commanded or only possible (`may use`) relates nothing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from indexer.extraction.lexicon import word_set
from indexer.extraction.prose.noun_phrases import DEFINITE, NAME, NounPhrase, Words, phrase_after, phrase_before
from indexer.extraction.prose.open_verbs import OpenVerb, verb_of
from indexer.extraction.prose.predicates import (
    ADJECTIVES,
    GIVING,
    PLAIN_ADJECTIVES,
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
_DIRECTIONS = "north south east west northeast northwest southeast southwest outside inside"
_COMPOUND_PREPOSITIONS = {("next", "to"), ("close", "to"), ("out", "of"), ("because", "of")} | {
    (direction, "of") for direction in _DIRECTIONS.split()
}
_PARTICLES = word_set("over up out off down back away")  # `takes over`, `grew up in`
_FINITE_BE = word_set("is are was were")
_HAVE = word_set("has have had")
_DO = word_set("do does did")
_GET = word_set("get gets got")
_SINGULAR = word_set("a an each every this that")
_SINCE_LONG = word_set("long since recently")  # `has long been`
_PLURAL_FORMS = word_set("are were have had get")
_NOT_BEFORE_VERB = word_set("to the a an of 's ’s")
# `is wired to`; `used to` and `related to` are of other classes
_AFTER_PARTICIPLE = word_set("by to with from into in on at under")
_ATTACHED = word_set(
    "wired tied bolted joined linked connected attached fixed chained moored welded glued anchored pinned strapped"
)
_LINKING = word_set("grows becomes remains seems looks feels stays turns gets goes keeps falls appears sounds proves")
FINITE = THIRD_PERSONS | BE | MODALS | _HAVE | _DO
_BOUNDARIES = RELATIVES | SUBORDINATORS | {",", ";", ":", "-", "–", "(", "and", "but", "or"}
_OPENING_GROUP = _FINITE_BE | _HAVE | _DO | _GET | MODALS | VERB_FORMS.keys()  # words that may begin a verb group
_ENDING_GROUP = ("n't", "n’t", "ed")  # of others that may


class VerbGroup(NamedTuple):
    """A verb group: its first word, the word after it, what it relates, and where its objects begin."""

    begin: int
    end: int
    relation: Relation | None = None
    onto: int = 0
    is_plural: bool = False
    is_copula: bool = False
    is_reduced: bool = False  # a participle that follows what it describes, without `is`
    is_open: bool = False  # of a verb that has no predicate of its own
    agent: Relation | None = None  # of a passive verb with what follows `by`


class VerbGroups:
    """Reads the verb groups of one sentence. What it has found of subjects is in `subjects`."""

    def __init__(self, words: Words, subjects: Subjects) -> None:
        self._words = words
        self._subjects = subjects

    def at(self, at: int) -> VerbGroup | None:
        """The verb group that begins at an index; where it states no relation of a list, that of any verb."""
        word = self._words.lower[at]
        group = self._group_at(at) if word in _OPENING_GROUP or word.endswith(_ENDING_GROUP) else None
        if group is None or not (group.is_copula or (group.relation and group.relation.is_typed)):
            return self._open_group_at(at) or group
        return group

    def _group_at(self, at: int) -> VerbGroup | None:
        """The verb group that begins at an index."""
        word = self._words.lower[at]
        if word in MODALS or word in _DO or word.endswith(("n't", "n’t")):
            return VerbGroup(at, at + 1, is_plural=True)
        if word in _FINITE_BE or (word in _GET and is_participle(self._words.at(at + 1))):  # `gets copied to`
            return self._with_be(at)
        if word in _HAVE:
            return self._perfect(at)
        if word in VERB_FORMS:
            return self._alone(at)
        if word.endswith("ed") and self._words.at(at + 1) == "by":
            return VerbGroup(at, at + 1, Relation(f"{word}_by", is_typed=False), at + 2, is_reduced=True)
        return None

    def _open_group_at(self, at: int) -> VerbGroup | None:
        """The group of a verb that has no predicate of its own: a word between a noun phrase and what may be its
        object, in a form that agrees with the phrase (`The heron stalks the frog.`)."""
        words, word = self._words, self._words.lower[at]
        verb = verb_of(word)
        if not verb.third or at == 0 or words.is_capital(at) or not (is_open(word) or word in PAST_VERBS | _GET):
            return None
        own = phrase_before(words, self._subjects.after_subject(at))
        subject = own or self._subject_apart(at, verb)
        if subject is None or not self._agrees(verb, subject):
            return None
        onward = words.after_adverbs(at + 1)
        preposition = self._preposition(onward) or self._particle(onward)
        target = phrase_after(words, onward + len(preposition))
        if target is None or not (_ends_object(target) or (verb.third in GIVING and target.after in DETERMINERS)):
            return None
        is_marked = verb.is_sure or (not preposition and (target.determiner or target.grade() == NAME))
        is_clause = _is_clause(subject) or _is_compound(verb, subject) if own else not is_marked
        if verb.is_participle and not (verb.is_irregular or preposition or target.determiner):
            is_clause = is_clause or own is None or (subject.size == 1 and subject.grade() == DEFINITE)
        if verb.is_third and not verb.is_sure and subject.size == 1 and is_gerund(subject.head):
            return None  # `The original unwrapped object`, `The templating languages`
        if is_clause or not self._is_verb(at, verb, subject, target, preposition[-1:]):
            return None
        return self._open_group(at, at, not verb.is_third, verb.third)

    def _subject_apart(self, at: int, verb: OpenVerb) -> NounPhrase | None:
        """The subject before an insertion, or of the verb before: `broke the ice and freed the ship`."""
        words, latest = self._words, self._subjects.latest
        if verb.is_base or words.at(at - 1) not in (",", "and", "but"):
            return None
        if words.at(at - 1) == ",":
            latest = self._subjects.before(at, is_plural=False)
        elif latest and verb.is_participle and not BE.isdisjoint(words.lower[latest[0].high : at]):
            return None  # `was born and raised in`
        return latest[0] if latest else None

    def _agrees(self, verb: OpenVerb, subject: NounPhrase) -> bool:
        """Whether a finite form fits a subject: `owls eat`, `the owl eats`, `it ate`."""
        is_plural = subject.is_plural and subject.grade() != NAME and subject.determiner not in _SINGULAR
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

    def _particle(self, at: int) -> tuple[str, ...]:
        return tuple({self._words.at(at)} & _PARTICLES)

    def _is_verb(
        self, at: int, verb: OpenVerb, subject: NounPhrase, target: NounPhrase, preposition: Sequence[str]
    ) -> bool:
        """Whether a form that may be a noun or a participle, too, is a finite verb here: what comes after it begins an
        object, or the clause has no other verb."""
        words = self._words
        is_bare = not (target.determiner or words.is_capital(target.low))
        is_adjective = target.size == 1 and not preposition and verb.third in _LINKING  # `grow wet`
        if is_bare and (is_adjective or _is_verb_rather(verb, subject, target, preposition)):
            return False
        if verb.is_sure:
            return True
        if not verb.is_past and words.at(len(words) - 1)[-1].isalnum():
            return False  # `Default values for arguments`: no sentence
        is_loose = is_bare and verb.is_third and subject.grade() < DEFINITE
        if (is_loose and singular(words.lower[at]) in VAGUE) or words.lower[at] in JUDGEMENTS:
            return False  # `line numbers for debugging`, `browsers hold long connections`
        is_whole = subject.begin == 0 or subject.grade() >= DEFINITE or subject.is_generic
        if preposition:
            inner = words.lower[subject.low : subject.high - 1]
            is_compound = (
                subject.is_generic and bool(inner) and verb.is_third and all(singular(word) == word for word in inner)
            )
            is_subject = (
                subject.determiner or subject.grade() == NAME or (verb.is_base and subject.is_plural) or is_compound
            )
            return is_whole and bool(is_subject) and self._is_only_verb(at, subject)
        is_marked = target.determiner in _ARTICLES or (target.grade() == NAME and not words.is_capital(at - 1))
        return is_whole and (is_marked or self._is_only_verb(at, subject))

    def is_infinitive(self, at: int) -> bool:
        words, verb = self._words, verb_of(self._words.at(at + 1))
        is_noun = not verb.is_certain and is_open(words.at(at + 2)) and words.at(at - 1) in _ATTACHED
        return words.at(at) == "to" and verb.is_base and not is_noun  # not `is wired to junction boxes`

    def _is_only_verb(self, at: int, subject: NounPhrase) -> bool:
        lower = self._words.lower
        low = max((low + 1 for low in range(at) if lower[low] in _BOUNDARIES), default=0)
        high = next((high for high in range(at, len(lower)) if lower[high] in _BOUNDARIES), len(lower))
        others = [lower[each] for each in range(low, high) if each != at and lower[each - 1] not in _ARTICLES]
        is_other = any(word in FINITE or word in PAST_VERBS for word in others)
        is_other = is_other or any(verb_of(word).is_sure for word in others if word[-1] == "s")
        return not (is_other or any(verb_of(word).is_past and word.endswith("ed") for word in lower[low : subject.low]))

    def _with_be(self, begin: int) -> VerbGroup:
        words, is_plural = self._words, self._words.lower[begin] in _PLURAL_FORMS
        at = words.after_adverbs(begin + 1)
        if words.at(at) in NEGATIONS:
            return VerbGroup(begin, at + 1, is_plural=is_plural)
        return self._after_be(begin, at, is_plural)

    def _perfect(self, begin: int) -> VerbGroup:
        words = self._words
        is_plural = words.lower[begin] in _PLURAL_FORMS
        at = words.after_adverbs(begin + 1)
        at += words.at(at) in _SINCE_LONG
        if words.at(at) == "been":
            return self._after_be(begin, words.after_adverbs(at + 1), is_plural)
        lemmas = _lemmas(VERB_FORMS.get(words.at(at), ()), "is_participle")
        group = self._related_group(begin, at, is_plural, lemmas)
        verb = verb_of(words.at(at))
        if group.relation is None and verb.is_participle:  # `has supervised Ben since May`
            return self._open_group(begin, at, is_plural, verb.third)
        return group

    def _open_group(self, begin: int, at: int, is_plural: bool, third: str) -> VerbGroup:
        """The group whose main verb, at an index, has no predicate of its own but its third person."""
        onward = self._words.after_adverbs(at + 1)
        if not third:
            return VerbGroup(begin, at + 1, is_plural=is_plural)
        preposition = self._preposition(onward) or self._particle(onward)
        relation = Relation("_".join((third, *preposition)), is_typed=False)
        return VerbGroup(begin, at + 1, relation, onward + len(preposition), is_plural, is_open=True)

    def _after_be(self, begin: int, at: int, is_plural: bool) -> VerbGroup:
        """`is <participle>`, `is <verb>ing`, `is <adjective> <preposition>`, `is a`."""
        words = self._words
        if words.at(at) == "being":
            at = words.after_adverbs(at + 1)
        for size in (3, 2):
            phrase = tuple(words.lower[at : at + size])
            if relation := ADJECTIVES.get(phrase) or PLAIN_ADJECTIVES.get(" ".join(phrase)):
                return VerbGroup(begin, at, relation, at + size, is_plural, is_open=not relation.is_typed)
        word = words.at(at)
        if word in DETERMINERS or words.is_capital(at) or word == "one":
            onto = at + (2 if words.at(at + 1) == "of" else 1) * (word == "one")
            return VerbGroup(begin, at, onto=onto, is_plural=is_plural, is_copula=True)
        if word.endswith("ing"):
            group = self._related_group(begin, at, is_plural, _lemmas_of_ing(word)[:1])
            onward = words.after_adverbs(at + 1)
            is_object = words.at(onward) in DETERMINERS or words.is_capital(onward) or words.at(at - 1) == "been"
            is_open_verb = not group.relation and (is_object or words.at(onward) in _PARTICLES | _OPEN_PREPOSITIONS)
            return self._open_group(begin, at, is_plural, _third_of_ing(word)) if is_open_verb else group
        if word.endswith("er") and words.at(at + 1) == "than":
            return VerbGroup(begin, at, Relation(f"{word}_than", is_typed=False), at + 2, is_plural, is_open=True)
        group = self._passive(begin, at, is_plural)
        may_be_noun = is_open(word) and not is_participle(word)
        if group.relation is None and words.lower[begin] == "are" and may_be_noun:
            return VerbGroup(begin, at, onto=at, is_plural=True, is_copula=True)  # `Slow worms are lizards`
        return group

    def _passive(self, begin: int, at: int, is_plural: bool) -> VerbGroup:
        """The group whose main verb is the participle at an index, if it is one."""
        words, word = self._words, self._words.at(at)
        lemmas, onward = _lemmas(VERB_FORMS.get(word, ()), "is_participle"), words.after_adverbs(at + 1)
        group = self._related_group(begin, at, is_plural, lemmas, is_passive=True)
        preposition, is_phrasal, compound = words.at(onward), words.at(onward + 1) == "by", self._preposition(onward)
        if not _is_past_participle(word, lemmas) or not (preposition in PREPOSITIONS or compound):
            return group
        agents = (passive_relation(lemma, "by") for lemma in lemmas)
        group = group._replace(agent=next(filter(None, agents), Relation(f"{word}_by", is_typed=False)))
        if is_phrasal:  # `is paid for by`
            relation = Relation(f"{word}_{preposition}_by", is_typed=False)
        elif len(compound) == 2 and not self.is_infinitive(onward + 1):  # `is driven out of`
            relation = Relation("_".join((word, *compound)), is_typed=False)
        elif group.relation is None and preposition in _AFTER_PARTICIPLE and not self.is_infinitive(onward):
            relation = Relation(f"{word}_{preposition}", is_typed=False)
        else:
            return group
        is_longer = is_phrasal or len(compound) == 2
        onto = onward + 1 + is_longer
        return VerbGroup(begin, at, relation, onto, is_plural, is_open=True, agent=group.agent)

    def _related_group(
        self, begin: int, at: int, is_plural: bool, lemmas: Iterable[str], is_passive: bool = False
    ) -> VerbGroup:
        """The group whose main verb is at an index, with the relation of the first lemma that states one."""
        words = self._words
        onward = words.after_adverbs(at + 1)
        preposition = words.at(onward) if words.at(onward) in PREPOSITIONS else ""
        relation_of = passive_relation if is_passive else active_relation
        is_aim = self.is_infinitive(onward)  # `is designed to allow`
        for lemma in lemmas:
            relation = relation_of(lemma, preposition)
            if relation and (relation.is_typed or not is_aim):
                return VerbGroup(begin, at + 1, relation, onward + bool(preposition), is_plural)
        return VerbGroup(begin, at + 1, is_plural=is_plural)

    def _alone(self, at: int) -> VerbGroup | None:
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
        if verb_of(words.at(at - 1)).is_sure:
            return False  # `allows build tools`
        if words.at(at - 1).endswith("s") and (not words.is_capital(at - 1) or begins_object or at == 1):
            return True
        return (begins_object or following in PREPOSITIONS) and self._is_joined(at)

    def _is_joined(self, at: int) -> bool:
        """Whether the subject before a verb is two phrases, `Tern and Plover use`; or a plural that a verb shares."""
        if self._words.at(at - 1) in ("and", "or"):
            latest = self._subjects.latest
            return bool(latest) and self._words.at(latest[-1].high - 1).endswith("s")
        phrase = phrase_before(self._words, at)
        return phrase is not None and phrase.before == "and"


def _is_past_participle(word: str, lemmas: Iterable[str]) -> bool:
    return bool(lemmas) or is_participle(word) or verb_of(word).is_participle


def _is_clause(phrase: NounPhrase) -> bool:
    """Whether what looks like a subject has a verb and its object in it: `functions accept values`."""
    inner = phrase.words.lower[phrase.low + 1 : phrase.high]
    first = verb_of(phrase.words.lower[phrase.low])
    if first.is_past and phrase.size > 1 and not phrase.determiner and phrase.begin > 0:
        return True  # `and played games with`
    return any(verb_of(word).is_sure for word in inner) or not QUANTIFIERS.isdisjoint(inner)


def _is_compound(verb: OpenVerb, subject: NounPhrase) -> bool:
    """Whether a word is rather part of the object of what ends the phrase before: `Insulin lowers blood sugar`."""
    is_verb = not verb.is_base or verb.is_certain or verb.is_irregular or verb.third in THIRD_PERSONS
    before = verb_of(subject.words.lower[subject.high - 1])
    return subject.size > 1 and before.is_third and not before.is_base and (before.is_certain or not is_verb)


def _is_verb_rather(verb: OpenVerb, subject: NounPhrase, target: NounPhrase, preposition: Sequence[str]) -> bool:
    """Whether the word after a form that may be a noun is the verb instead, or its infinitive: `cloud services write`,
    `needs to go`; not `rats dig burrows`, `insurance covers lost luggage`."""
    further = verb_of(target.words.lower[target.low])
    if not further.third:
        return False
    is_named = subject.grade() == NAME and subject.size > 1
    is_finite = verb.is_sure or (is_named and target.size > 1 and not further.is_certain)
    is_rare = not (further.is_certain or further.is_irregular or further.third in THIRD_PERSONS)
    is_finite = is_finite or is_rare or (verb.is_third and subject.determiner in _SINGULAR)  # `a quern grinds grain`
    if "to" in preposition or (further.is_base and verb.is_third and not (is_finite or preposition)):
        return True
    is_adjective = further.is_participle and target.size > 1 and (verb.is_sure or subject.is_generic)
    is_noun = target.size == 1 and not further.is_certain and (verb.is_base or further.is_third or verb.is_sure)
    return (further.is_certain or target.size == 1) and not (is_adjective or is_noun)


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
    return [lemma for lemma in (stem, f"{stem}e", stem[:-1]) if any(each.is_base for each in VERB_FORMS.get(lemma, ()))]


def _third_of_ing(word: str) -> str:
    stem = word[:-3]
    whole, with_e = (stem, f"{stem}e") if stem[-2:].strip("aeiouy") == stem[-2:] else (f"{stem}e", stem)
    found = map(verb_of, (whole, with_e, stem[:-1]))  # `singing`, `wading`
    return next((verb.third for verb in found if verb.is_base), "")
