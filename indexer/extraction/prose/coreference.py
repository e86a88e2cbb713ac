"""Which earlier words a sentence refers to: `It`, `This test`, and `the boiler` after `the steam boiler`.

Only what has one likely reading is resolved. A pronoun that opens a sentence is the subject of the sentence before it
in its section, else the section's heading, where number and kind agree (the preferred centre of Grosz, Joshi and
Weinstein 1995, section 4). A shortened name is the latest longer one of the document that ends in its words.
"""

import re

from indexer.extraction.lexicon import GIVEN_NAMES, HONORIFICS, is_part_of_document, word_set
from indexer.extraction.prose.noun_phrases import DEFINITE, NAME, NounPhrase, Words, phrase_after, whole_phrase
from indexer.extraction.prose.open_verbs import verb_of
from indexer.extraction.prose.word_classes import DETERMINERS, VAGUE, singular
from schemas.predicates import IS_A

MAX_WORDS = 6
MAX_SHORTENED_WORDS = 2
MAX_REMEMBERED = 64
_PRONOUN = re.compile(r"(It|They|He|She)(?= )")
_POINTING = re.compile(r"(?:This|These|That|Those|Each)(?= [a-z])")
_SHORTENED = re.compile(r"The ([a-z]+)(?= (?:is|was|are|were|has|have|had|[a-z]+[sd]|ran|won|took|gave) )")
_PERSONAL = ("He", "She")
_PASSIVE = re.compile(r"(?:It|They) (?:is|are|was|were|has been|have been) (?:\w+ly )?\w+ (?:by|in|from|at)\b")
_NOT_NOUNS = word_set("is are was were has have had does did do can will may should must would means is of and to in")


class References:
    """Reads the sentences of a document in their order."""

    def __init__(self) -> None:
        self._section = -1
        self._subject = ""  # of the sentence before, with its article
        self._ends: list[str] = []  # of its last fact, the object first
        self._kinds: dict[str, str] = {}  # what `the bridge` stands for after `Tay is a bridge`, by that noun
        self._longer: dict[str, str] = {}  # what a shortened name may stand for, by its last word in the singular

    def enter(self, section: int, heading: str) -> None:
        """Called before each sentence with the number of its section; the first one may refer to the heading."""
        if section != self._section:
            self._section = section
            self._subject, self._ends, self._kinds = _subject_of_heading(heading), [], {}

    def resolved(self, sentence: str) -> str:
        """The sentence with what its first word stands for."""
        pointing = _POINTING.match(sentence)
        pointed = sentence[pointing.end() + 1 :].partition(" ")[0] if pointing else ""
        if pointing and pointed not in _NOT_NOUNS and not verb_of(pointed).is_sure:
            sentence = f"The{sentence[pointing.end() :]}"
        if shortened := _SHORTENED.match(sentence):
            noun = singular(shortened[1])
            ends = [end for end in self._ends if end.lower().endswith(f" {shortened[1]}") and " of " not in end]
            longer = self._kinds.get(noun) or next(iter(ends if noun in VAGUE else ()), shortened[0])
            return f"{longer}{sentence[shortened.end() :]}"
        pronoun = _PRONOUN.match(sentence)
        candidates = [*self._ends[:1], self._subject] if _PASSIVE.match(sentence) else [self._subject, *self._ends]
        if pronoun and pronoun[1] in _PERSONAL:
            candidates[1:] = [end for end in self._ends if " " in end]
        found = next((each for each in candidates if pronoun and each and _agrees(pronoun[1], each)), "")
        return f"{found}{sentence[pronoun.end() :]}" if pronoun and found else sentence

    def read(self, words: Words) -> None:
        """Remember the subject of a sentence, for the next one."""
        phrase = phrase_after(words, 0)
        if phrase and phrase.size > 1 and phrase.after in DETERMINERS and verb_of(words.lower[phrase.high - 1]).third:
            phrase = NounPhrase(words, phrase.begin, phrase.low, phrase.high - 1, phrase.determiner)  # `Owls eat the`
        is_subject = phrase is not None and phrase.size <= MAX_WORDS and phrase.after[:1].isalnum()
        is_named = phrase is not None and (phrase.grade() >= DEFINITE or phrase.is_generic)
        self._subject, self._ends = _written(phrase) if phrase is not None and is_subject and is_named else "", []

    def whole(self, surface: str) -> str:
        """The longer name that a shortened one stands for; itself where there is none."""
        words = surface.split()
        longer = self._longer.get(singular(words[-1].lower()), "") if words else ""
        if (
            0 < len(words) <= MAX_SHORTENED_WORDS
            and longer.lower().endswith(_last(words))
            and longer.count(" ") >= len(words)
        ):
            return longer
        return surface

    def remember(self, subject: str, predicate: str, described: str) -> None:
        """The ends of a fact: what the next sentence, and shortened names, may refer to."""
        if predicate != IS_A:
            self._ends = [end if end[:1].isupper() else f"The {end}" for end in (described, subject)]
        elif subject[:1].isupper():
            noun = singular(described.partition(" of ")[0].split()[-1].lower())
            self._kinds[noun] = subject if self._kinds.get(noun, subject) == subject else ""
        for surface in (subject, described):
            self._remember(surface)

    def _remember(self, surface: str) -> None:
        words = surface.split()
        if 1 < len(words) <= MAX_WORDS and len(self._longer) < MAX_REMEMBERED:
            self._longer[singular(words[-1].lower())] = surface


def _last(words: list[str]) -> str:
    return " " + " ".join(words).lower()


def _written(phrase: NounPhrase) -> str:
    if phrase.determiner in ("the", "a", "an", "our"):
        return f"The {phrase.surface}"
    is_one = phrase.after in ("is", "was", "has") or verb_of(phrase.after).is_third  # `Kubernetes is`
    is_named = is_one or phrase.grade() == NAME or not phrase.is_plural
    return phrase.surface if is_named else f"{phrase.surface[0].lower()}{phrase.surface[1:]}"


def _subject_of_heading(heading: str) -> str:
    if not heading or is_part_of_document(heading):
        return ""
    phrase = whole_phrase(heading, MAX_WORDS)
    if phrase is None or not phrase.has_head() or phrase.is_vague():
        return ""
    return heading if phrase.grade() == NAME and heading.istitle() else f"The {heading[0].lower()}{heading[1:]}"


def _agrees(pronoun: str, subject: str) -> bool:
    words = subject.removeprefix("The ").split()
    is_name = all(word[0].isupper() for word in words) and not subject.startswith("The ")
    is_person = is_name and (len(words) in (2, 3) or words[0].lower() in GIVEN_NAMES | HONORIFICS)
    if pronoun in _PERSONAL:
        return is_name and len(words) <= 3
    is_plural = not is_name and singular(words[-1].lower()) != words[-1].lower()
    return is_plural or is_name if pronoun == "They" else not is_plural and not is_person
