"""The subjects of a verb: before it, before a relative clause or an insertion, or shared with the verb before."""

from indexer.extraction.lexicon import word_set
from indexer.extraction.prose.noun_phrases import DEFINITE, NAME, NounPhrase, Words, phrase_after, phrase_before
from indexer.extraction.prose.open_verbs import verb_of
from indexer.extraction.prose.predicates import THIRD_PERSONS, VERB_FORMS
from indexer.extraction.prose.word_classes import (
    BE,
    MODALS,
    NEGATIONS,
    PREPOSITIONS,
    WEAK_DETERMINERS,
    is_adverb,
    is_gerund,
    is_participle,
)

RELATIVES = word_set("which who that")
_CONDITIONS = word_set("if unless whether when whenever until how why where wherever before after till")
_NOTED = word_set("note notice remember recall")
_AGAIN = ("it", "he", "she", "they")  # `X uses Y, and it requires Z`
_CONNECTING = frozenset(("and", "but", ";"))
_JOINING = ("and", "but", "then")
_IDIOMS = frozenset(("in turn", "in fact", "by default", "in practice", "for now", "in addition", "at last", "by now"))
_LOOSE = word_set("for in at on to by")  # what follows a phrase after one of these may be about what precedes it
_IN_NAMES = word_set("for against on to")
_OPENERS = word_set("now here today")
_NO_SUBJECT = MODALS | NEGATIONS | BE | {"to"}


class Subjects:
    """Finds subjects from left to right; remembers those of the latest verb, for verbs that share them."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self.latest: list[NounPhrase] = []
        self.complement_end = -1  # of the latest `X is a Y`, after which a relative clause is about X

    def before(self, verb: int, is_plural: bool) -> list[NounPhrase]:
        """The subjects of the verb group that begins at an index; none where it states no fact."""
        words, at = self._words, self.after_subject(verb)
        before = words.at(at - 1)
        if words.at(verb - 1) == "there" or not before or before in _NO_SUBJECT:
            return []
        if before in _JOINING or (before == "," and words.at(at) in _JOINING):
            return self._shared(at - 1)
        if before in RELATIVES:
            return self._antecedent(at - 1)
        if before in _AGAIN and words.at(at - 2) in _CONNECTING and words.at(verb) not in BE:
            return [each for each in self.latest[:1] if (before == "they") == each.is_plural or before in ("he", "she")]
        if before == ",":
            return self._before_insertion(at - 1)
        while at > 1 and is_participle(words.lower[at - 1]) and not words.is_capital(at - 1):
            at -= 1  # `the idea proposed was`
        phrase = phrase_before(words, at)
        return self._whole(phrase, is_plural) if phrase else []

    def after_subject(self, verb: int) -> int:
        """The first index of the adverbs and idioms before a verb."""
        at = verb
        while at > 1 and (self._is_idiom(at - 2) or self._words.after_adverbs(at - 1) != at - 1):
            at -= 2 if self._is_idiom(at - 2) else 1
        return at

    def described(self, participle: int) -> list[NounPhrase]:
        """What a participle describes: the phrase before it, or the subject whose complement that is."""
        words = self._words
        if words.at(participle - 1) in ("and", "or"):
            return self.latest if self.complement_end >= 0 else []
        is_apart = words.at(participle - 1) == ","
        phrase = phrase_before(words, participle - is_apart)
        if phrase is None:
            return []
        if phrase.high == self.complement_end:
            return self.latest
        if 0 <= self.complement_end < phrase.high:
            return []  # `a library for Python based on`: the library is, or Python
        weak = phrase.determiner in WEAK_DETERMINERS or (phrase.begin == 0 and not words.is_capital(0))
        weak = weak or phrase.before in _LOOSE or (is_apart and phrase.before == "and") or self._holds_verb(phrase)
        return [] if weak or (is_apart and phrase.grade() < DEFINITE) else [phrase]

    def _holds_verb(self, phrase: NounPhrase) -> bool:
        """Whether a phrase is a clause without articles: `tools use information stored`."""
        inner = self._words.lower[phrase.low + 1 : phrase.high - 1]
        return any(word in THIRD_PERSONS or (not phrase.determiner and verb_of(word).is_third) for word in inner)

    def _is_idiom(self, at: int) -> bool:
        return f"{self._words.at(at)} {self._words.at(at + 1)}" in _IDIOMS

    def _shared(self, conjunction: int) -> list[NounPhrase]:
        """The subjects of the verb before, else the phrase that the sentence begins with."""
        if self.latest:
            return self.latest
        words, opening = self._words, phrase_after(self._words, 0)
        if opening is None or opening.high >= conjunction or opening.grade() < DEFINITE:
            return []
        if any(word in THIRD_PERSONS or word in BE for word in words.lower[opening.high + 1 : conjunction]):
            return []  # of another clause between them
        return self._whole(opening, is_plural=True)

    def _antecedent(self, relative: int) -> list[NounPhrase]:
        """What `, which` or `who` is about; a clause without a comma only narrows what its noun means."""
        words = self._words
        end = relative - (words.at(relative - 1) == ",")
        if end == self.complement_end:
            complement = phrase_before(words, end)
            is_name = complement and not complement.determiner and complement.grade() == NAME
            return [complement] if complement and is_name else self.latest  # `The owner is Ann Bell, who`
        if 0 <= self.complement_end < end and words.at(self.complement_end) != ",":
            return []  # `a library for Python, which`: of the library, or of Python
        phrase = phrase_before(words, end)
        if phrase is None or phrase.determiner in WEAK_DETERMINERS:
            return []
        is_the_one = phrase.determiner == "the" and phrase.begin == 0  # `The pump that feeds the boiler`
        is_meant = words.at(relative) != "that" if end < relative else is_the_one
        return [phrase] if phrase.grade() >= DEFINITE and is_meant else []

    def _before_insertion(self, comma: int) -> list[NounPhrase]:
        """The phrase before an insertion that ends at a comma: `Beacon, which we like, uses`. Insertions after one that
        opens the sentence may have commas of their own: `Kiel Airport, located near Holtenau, Germany, is`."""
        words, opening = self._words, phrase_after(self._words, 0)
        if opening is not None and opening.grade() >= DEFINITE and self._is_described(opening, comma):
            return self._whole(opening, is_plural=False)
        name = phrase_before(words, comma)
        if name and name.grade() == NAME and name.before == "," and not name.determiner:
            role = phrase_before(words, name.begin - 1)  # `The painter's brother, Ludo Merrin,`
            if role and role.begin == 0 and role.determiner and role.grade() < NAME:
                return [name]
        for at in range(comma - 1, 0, -1):
            if words.lower[at] in (";", ":"):
                break
            phrase = phrase_before(words, at) if words.lower[at] == "," else None
            if phrase and words.at(at + 1) not in ("and", "or") and phrase.grade() >= DEFINITE:
                return self._whole(phrase, is_plural=False)
        return []

    def _is_described(self, phrase: NounPhrase, end: int) -> bool:
        """Whether all from a phrase to an index is what a participle after a comma begins, and no clause."""
        words, at = self._words, phrase.high + 1
        if phrase.after != "," or at >= end or not is_participle(words.lower[at]) or words.is_capital(at):
            return False
        between = words.lower[at + 1 : end]
        return not any(word in THIRD_PERSONS or word in BE or word in (";", ":") for word in between)

    def _whole(self, phrase: NounPhrase, is_plural: bool) -> list[NounPhrase]:
        """The phrase, or what it is only a part of: the head before its preposition, all phrases that `and` joins."""
        words = self._words
        if phrase.determiner == "that" and phrase.before in _NOTED:
            phrase = NounPhrase(words, phrase.low, phrase.low, phrase.high, "")
        elif phrase.determiner in WEAK_DETERMINERS or (
            phrase.before == "that" and words.at(phrase.begin - 2) not in _NOTED
        ):
            return []
        if self._is_conditional(phrase.begin) or self._is_action(phrase):
            return []
        if phrase.before in PREPOSITIONS and phrase.begin == 1:
            return []  # `In the middle is`
        phrase = self._narrowed(phrase) or phrase
        if phrase.before in PREPOSITIONS and words.at(phrase.begin - 2) != ",":
            return self._head(phrase, is_plural)
        if phrase.before == "and":
            return self._joined(phrase, is_plural)
        return [] if _is_object(phrase) else [phrase]

    def _narrowed(self, phrase: NounPhrase) -> NounPhrase | None:
        """What a clause narrows whose object the phrase is: the pump in `the pump that feeds the boiler needs`."""
        words, verb = self._words, phrase.begin - 1
        while verb > 0 and words.lower[verb] in PREPOSITIONS:
            verb -= 1
        begin = words.lower[verb - 1] if verb > 1 else ""
        is_clause = words.at(verb) in THIRD_PERSONS or verb_of(words.at(verb)).third
        return phrase_before(words, verb - 1) if begin in RELATIVES and is_clause else None

    def _head(self, phrase: NounPhrase, is_plural: bool) -> list[NounPhrase]:
        """What a preposition before the phrase belongs to: the class in `a class used as a hook needs`."""
        words, end = self._words, phrase.begin - 1
        while end > 1 and words.lower[end - 1].endswith("ed"):
            end -= 1
        head = phrase_before(words, end)
        if head and phrase.before in _IN_NAMES and NAME == head.grade() == phrase.grade() and words.is_capital(end - 1):
            return [NounPhrase(words, head.begin, head.low, phrase.high, head.determiner)]  # `Committee against Terror`
        if head is None:
            return [] if words.at(phrase.begin - 2)[:1].isalnum() else [phrase]
        return self._whole(head, is_plural)

    def _joined(self, phrase: NounPhrase, is_plural: bool) -> list[NounPhrase]:
        """Two phrases with a verb in the plural; else the last, or both as one name: `Clear and Present Danger is`."""
        other = phrase_before(self._words, phrase.begin - 1)
        if other is None or other.before == "and":
            return [phrase]
        if other.before in PREPOSITIONS:  # `installing on OSX and Windows is`
            return [phrase] if phrase.determiner or other.begin == 1 else self._head(other, is_plural)
        verb = verb_of(other.before)
        if other.begin > 1 and (verb.is_third or verb.is_past):
            return [phrase]  # `made an estimate and the committee engaged`
        if is_plural:
            is_adjective = (
                other.begin == 0 and other.high == 1 and phrase.grade() < NAME and not other.is_plural
            )  # `Free and open`
            return [phrase] if is_adjective else [*self._whole(other, is_plural=False), phrase]
        is_one = (
            (other.begin == 0 or other.before == ":" or other.determiner == "the")
            and not phrase.determiner
            and phrase.grade() == NAME
        )
        return [NounPhrase(self._words, other.begin, other.low, phrase.high, other.determiner)] if is_one else [phrase]

    def _is_action(self, phrase: NounPhrase) -> bool:
        """Whether the subject is an action: `Calling globals returns`, `installing the package installs`."""
        words, at = self._words, phrase.begin - 1
        while at >= 0 and is_adverb(words.at(at)):
            at -= 1
        if at >= 0 and is_gerund(words.lower[at]):
            return True
        return not phrase.determiner and phrase.size > 1 and is_gerund(words.lower[phrase.low])

    def _is_conditional(self, begin: int) -> bool:
        """Whether the clause that ends before an index opens with `when`, `whether`, …."""
        for at in range(begin - 1, -1, -1):
            if self._words.lower[at] in (",", ";", ":", "but"):
                break
            if self._words.lower[at] in _CONDITIONS:
                return True
        return False


def _is_object(phrase: NounPhrase) -> bool:
    """Whether it follows a verb of which it is the object."""
    is_after_verb = phrase.before in VERB_FORMS and phrase.begin > 1 and not phrase.determiner
    return is_after_verb and phrase.before not in _OPENERS
