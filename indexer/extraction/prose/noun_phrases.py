"""A sentence as words, and its noun phrases, without a part-of-speech tagger.

A noun phrase is a run of words that no closed class has, with a determiner before it and parts joined by `of`. It is
found from one of its ends, next to a verb; so each look is bounded by MAX_WORDS.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from indexer.extraction.lexicon import ABBREVIATIONS, DAYS, MONTHS, PARTICLES, SENTENCE_STARTERS
from indexer.extraction.prose.open_verbs import verb_of
from indexer.extraction.prose.predicates import NOUNS, THIRD_PERSONS
from indexer.extraction.prose.word_classes import (
    CONJUNCTIONS,
    DETERMINERS,
    JUDGEMENTS,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    VAGUE,
    WEAK_DETERMINERS,
    is_adverb,
    is_gerund,
    is_noun,
    is_open,
    is_participle,
    is_present_participle,
    singular,
)

MAX_WORDS = 8
MAX_JOINED = 8  # phrases of one enumeration

Grade = Literal[-1, 0, 1, 2]
NAME: Grade = 2
DEFINITE: Grade = 1  # `the worker`
BARE: Grade = 0  # `payments`, `a broker`
NONE: Grade = -1

_ABBREVIATIONS = "|".join(sorted(ABBREVIATIONS))
_TOKEN = re.compile(
    rf"(?:{_ABBREVIATIONS})\.|(?:[^\W\d_a-z]\.)+(?!\w)|(?:[a-z]\.){{2,4}}"
    r"|\w+(?:['’](?!s\b)\w+)*(?:[.@/:+&-]\w+(?:['’](?!s\b)\w+)*)*(?:\+\+|\#(?!\w))?|['’]s\b|[^\w\s]"
)
_BRACKET = re.compile(r"\([^()]{0,200}\)|\[[^\[\]]{0,80}\]")
_OWNING = frozenset(("'s", "’s"))
_CUTS = frozenset(('"', "“", "”", "/", "`", "'", "*", "+", *_OWNING))  # beside one, a phrase is only a part of one
_DASHES = frozenset(("–", "-"))
_YEAR = re.compile(r"[12]\d{3}")
_DATE_WORDS = MONTHS | DAYS
_GENERAL = frozenset(("the", "our", "each", "every", "all"))
_IRREGULAR_PLURALS = frozenset(
    ("people", "children", "feet", "mice", "geese", "cattle", "police", "salmon", "sheep", "deer")
)
_OPENING = frozenset((",", ":", ";", "."))
_POSSESSIVES = frozenset(("its", "their", "his", "her"))
_ORDINALS = frozenset(("first", "second", "third", "last"))
_PERIODIC = frozenset(("daily", "nightly", "weekly", "monthly", "quarterly", "yearly", "hourly"))
_PERIODS = frozenset(("century", "millennium", "decade", "half", "quarter", "year", "day", "season"))
_POINTING = frozenset(("this", "that", "these", "those"))


@dataclass(frozen=True, slots=True)
class Words:
    """A sentence's words and punctuation, without what is in brackets: `lower[i]` at `text[starts[i]:ends[i]]`."""

    text: str
    words: list[str]
    lower: list[str]
    starts: list[int]
    ends: list[int]

    def __len__(self) -> int:
        return len(self.words)

    def at(self, index: int) -> str:
        """The lower-case word, "" outside the sentence."""
        return self.lower[index] if 0 <= index < len(self.lower) else ""

    def is_capital(self, index: int) -> bool:
        return 0 <= index < len(self.words) and self.words[index][0].isupper()

    def adjacent(self, left: int) -> bool:
        """Whether only blanks are between a word and the next."""
        return not self.text[self.ends[left] : self.starts[left + 1]].strip()

    def after_adverbs(self, index: int) -> int:
        """The first index from this one on that holds no adverb."""
        while is_adverb(self.at(index)) and not self.is_capital(index):
            index += 1
        return index


def words_of(text: str, start: int, end: int) -> Words:
    """The words of a sentence `text[start:end]`."""
    words: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = start
    brackets = [match.span() for match in _BRACKET.finditer(text, start, end)]
    for low, high in (*brackets, (end, end)):
        for match in _TOKEN.finditer(text, at, low):
            words.append(match.group())
            starts.append(match.start())
            ends.append(match.end())
        at = high
    return Words(text, words, [word.lower() for word in words], starts, ends)


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Words [low, high) without the determiner, which is "" where there is none; `begin` is the determiner's index."""

    words: Words
    begin: int
    low: int
    high: int
    determiner: str

    @property
    def size(self) -> int:
        return self.high - self.low

    @property
    def before(self) -> str:
        """The word before the phrase and its determiner."""
        return self.words.at(self.begin - 1)

    @property
    def after(self) -> str:
        return self.words.at(self.high)

    @property
    def has_of(self) -> bool:
        return "of" in self.words.lower[self.low : self.high]

    @property
    def head_index(self) -> int:
        """The index of the last word before `of`, and before a number: `port 8443`."""
        lower = self.words.lower
        last = lower.index("of", self.low, self.high) - 1 if self.has_of else self.high - 1
        while last > self.low and lower[last][0].isdigit():
            last -= 1
        return max(last, self.low)

    @property
    def head(self) -> str:
        """The head noun in lower case."""
        return self.words.lower[self.head_index]

    @property
    def surface(self) -> str:
        """The text without the determiner, and of `the English band Ladytron` the name alone."""
        words, low = self.words.words, self.low
        if words[self.high - 1][0].isupper() and not self.has_of and _OWNING.isdisjoint(words[low : self.high]):
            common = (at + 1 for at in range(self.high - 2, low - 1, -1) if self._is_common(at))
            low = next(common, low)
        return self.words.text[self.words.starts[low] : self.words.ends[self.high - 1]]

    def _is_common(self, at: int) -> bool:
        word = self.words.words[at]
        return word.isalpha() and word.islower() and word not in PARTICLES and is_open(word)

    @property
    def is_generic(self) -> bool:
        """Whether it opens a sentence, or the clause after an introduction, and names a kind of things: `Violins`,
        `Soil compaction`, not `Violin`."""
        if self.determiner in ("a", "an"):
            return self.begin == 0 or self.before == ":"
        opens = self.begin == 0 or self.before in _OPENING or self._is_second()
        return opens and not self.determiner and (self.size > 1 or self.is_plural or self._is_second())

    def _is_second(self) -> bool:
        """`tugs` of `Ferries and tugs`."""
        first = phrase_before(self.words, self.begin - 1) if self.before == "and" else None
        return first is not None and first.begin == 0

    @property
    def is_plural(self) -> bool:
        """Whether the head noun has the form of a plural."""
        return singular(self.head) != self.head or self.head.endswith("men") or self.head in _IRREGULAR_PLURALS

    @property
    def is_described(self) -> bool:
        """Whether an article or another word says which of its kind, or how many: `a parser`, `raised type`."""
        return self.size > 1 or self.determiner in ("a", "an") or self.is_plural

    def has_head(self) -> bool:
        """Whether the phrase ends in a noun, as far as its form shows: not `easiest`, `available`, `2`."""
        if self.words.is_capital(self.head_index):
            return any(letter.isalpha() for letter in self.head)
        first = self.words.lower[self.low]
        if is_gerund(self.head) and self.size == 1 and self.determiner in ("a", "an", "the", "our"):
            return True  # `the packaging`
        if self.size > 1 and is_gerund(self.head) and not self.has_of:
            before = self.words.lower[self.high - 2]
            return not is_gerund(first) and first not in QUANTIFIERS and singular(before) == before  # `Book printing`
        is_counted = first[0].isdigit() or (first in QUANTIFIERS and not self.is_ranked())
        return self._is_head() and not is_counted

    def is_ranked(self) -> bool:
        """`the first ferry`, not `the first four`, `the first century`."""
        lower = self.words.lower[self.low : self.low + 2]
        is_one = self.size > 1 and lower[1] not in QUANTIFIERS | _PERIODS | {"of"}
        return self.determiner == "the" and lower[0] in _ORDINALS and is_one

    def _is_head(self) -> bool:
        """Whether the head is a noun by its form, or behind a noun and an article: `the key safe`."""
        if is_noun(self.head):
            return True
        is_compound = (
            self.size > 1 and self.determiner in _GENERAL and self.words.lower[self.high - 2] not in QUANTIFIERS
        )
        return is_compound and self.head in JUDGEMENTS

    def is_vague(self) -> bool:
        """Whether it is one noun without meaning of its own, alone or with an adjective: `the main reason`."""
        described = any(word not in JUDGEMENTS for word in self.words.lower[self.low : self.head_index])
        return (self.head in VAGUE or singular(self.head) in VAGUE) and not described and not self.has_of

    def is_name(self) -> bool:
        """Whether it is a name: its head has a capital that its place does not explain, or is an identifier; or another
        word has, after an article (`the Ledger service`), before `of`, or of what ends in a number."""
        lower = self.words.lower[self.low : self.high]
        owned = not _OWNING.isdisjoint(lower) and (bool(self.determiner) or self._is_proper(self.low))
        whole = self.determiner in ("the", "our") or self.has_of or owned
        whole = whole or (self.words.is_capital(self.low) and lower[-1][0].isdigit())
        return any(self._is_proper(at) for at in range(self.low if whole else self.head_index, self.high))

    def grade(self) -> Grade:
        """How well it names one thing: NAME, DEFINITE, BARE or NONE."""
        first = self.words.lower[self.low]
        is_counted = (first if self.low == 0 else self.words.words[self.low]) in QUANTIFIERS
        is_counted = is_counted and not self.is_ranked()
        if self.determiner in ("no", *_POINTING) or is_counted or (not self.determiner and is_gerund(first)):
            return NONE
        if self.is_name():
            return NONE if self._is_date() else NAME
        if not self.has_head() or (self.is_vague() and not self._has_proper()):
            return NONE
        return self._grade_of_common_noun()

    def _grade_of_common_noun(self) -> Grade:
        last = self.words.lower[self.high - 1]
        ends_in_number = last[0].isdigit() and last[-1].isdigit()
        if self.determiner in _GENERAL:
            return NAME if ends_in_number else DEFINITE
        if self.determiner in _POSSESSIVES:
            is_plural = self.is_plural and not self.is_vague()
            return DEFINITE if self.size > 1 else BARE if is_plural else NONE  # `sold its ferry division`, `its eggs`
        if self.determiner not in ("", "a", "an") and self.determiner not in NUMBERS:
            return NONE
        if self.determiner and self._has_proper():
            return DEFINITE  # `a Redis replica`
        return NAME if ends_in_number and self.size == 2 else BARE

    def _is_date(self) -> bool:
        lower = self.words.lower[self.low : self.high]
        return all(word.rstrip(".") in _DATE_WORDS or word[0].isdigit() for word in lower)

    def _has_proper(self) -> bool:
        return any(self._is_proper(at) for at in range(self.low, self.high))

    def _is_proper(self, at: int) -> bool:
        word = self.words.words[at]
        if any(letter.isupper() for letter in word[1:]) or "_" in word[1:-1] or "." in word[1:-1]:
            return not word[0].isdigit()
        return word[0].isupper() and (at > 0 or self._is_name_at_start())

    def _is_name_at_start(self) -> bool:
        """Whether the first word of a sentence is a name: no common word, no plural, and no part of a longer phrase."""
        first = self.words.lower[self.low]
        alone = self.head_index == self.low or self.words.at(self.low + 1) in _OWNING
        return first not in SENTENCE_STARTERS and alone and singular(first) == first and not is_participle(first)


def phrase_before(words: Words, end: int) -> NounPhrase | None:
    """The noun phrase whose last word is `end - 1`; None if there is none."""
    low = _start_of(words, end)
    if low == end:
        return None
    determiner = words.at(low - 1) if low > 0 and words.adjacent(low - 1) else ""
    article = determiner in DETERMINERS
    of = low - 1 - article
    if determiner not in WEAK_DETERMINERS and of > 0 and words.at(of) == "of" and _is_whole(words, of - 1):
        before = phrase_before(words, of)
        if before:
            return NounPhrase(words, before.begin, before.low, end, before.determiner)
    if _is_title(words, low, determiner):
        return NounPhrase(words, 0, 0, end, "")
    if article:
        return NounPhrase(words, low - 1, low, end, determiner)
    if determiner in _CUTS or (determiner in _DASHES and words.text[words.ends[low - 1] - 1 :][:2] != "- "):
        return None
    low = _without_openers(words, low, end)
    return NounPhrase(words, low, low, end, "")


def _is_title(words: Words, low: int, before: str) -> bool:
    """Whether the name that begins the sentence continues at `low`: `Sonic the Hedgehog`, `Extreme Makeover: Home`."""
    opening = low - 1
    if not words.is_capital(low) or opening < 1 or not all(map(words.is_capital, range(opening))):
        return False
    return (before == "the" and opening == 1 and is_open(words.lower[0])) or (before == ":" and opening > 1)


def _start_of(words: Words, end: int) -> int:
    low = end
    while low > 0 and end - low < MAX_WORDS and (low == end or words.adjacent(low - 1)):
        at = low - 1
        inner = low < end and (
            (words.lower[at] in PARTICLES | {"&"} and words.is_capital(low) and words.is_capital(at - 1))
            or (words.lower[at] in _OWNING and _is_inside(words, at - 1))
        )
        if not (inner or _is_inside(words, at)):
            break
        low = at
    return low


def _is_inside(words: Words, at: int) -> bool:
    """Whether the word at an index may belong to a phrase; also `WHO`, `US`."""
    if not 0 <= at < len(words.words):
        return False
    lower = words.lower[at]
    if is_open(lower):
        return True
    word = words.words[at]
    if lower.endswith("ly") and at > 0:  # `Mrs. Pemberly`, `the nightly build`
        return word[0].isupper() or (lower in _PERIODIC and words.lower[at - 1] in DETERMINERS)
    return len(word) > 1 and word.isupper() and lower in PRONOUNS


def _is_whole(words: Words, at: int) -> bool:
    """Whether a noun before `of` names a whole with what follows: not `a kind of`, `a number of`."""
    return words.is_capital(at) or singular(words.lower[at]) not in VAGUE


def _is_opener(words: Words, at: int) -> bool:
    """Whether a word at the start of a sentence is not part of the name after it: `Today`, not `US` or `Open`."""
    word = words.lower[at]
    return (
        word in SENTENCE_STARTERS
        and not words.words[at].isupper()
        and (is_adverb(word) or not words.is_capital(at + 1))
    )


def _without_openers(words: Words, low: int, end: int) -> int:
    """Where a phrase without a determiner begins: after adverbs that open the sentence, after a date."""
    if low == 0:
        while low < end - 1 and _is_opener(words, low):
            low += 1
    elif words.at(low - 1) in PREPOSITIONS:
        while low < end - 1 and (words.lower[low].rstrip(".") in _DATE_WORDS or words.lower[low].isdigit()):
            low += 1
    if low < end - 1 and _YEAR.fullmatch(words.words[low]) and words.at(low - 1) in PREPOSITIONS | {","}:
        low += 1
    return low


def phrase_after(words: Words, start: int) -> NounPhrase | None:
    """The noun phrase that begins at word `start`, with its `of`; None if there is none, or only a part of one."""
    determiner = words.at(start) if words.at(start) in DETERMINERS | NUMBERS else ""
    low = start + bool(determiner)
    if determiner == "all" and words.at(low) == "the":
        low += 1
    high = _end_of(words, low)
    if high == low:
        return None
    while words.at(high) == "of" and words.adjacent(high - 1):
        if is_gerund(words.at(high + 1)):
            break  # `accused the innkeeper of watering`
        onward = high + 1 + (words.at(high + 1) in DETERMINERS - WEAK_DETERMINERS)
        further = _end_of(words, onward)
        if further == onward or further - low > MAX_WORDS + 2:
            return None  # `the result of this`: what it names is elsewhere
        high = further
    return None if words.at(high) in _CUTS else NounPhrase(words, start, low, high, determiner)


def whole_phrase(text: str, max_words: int) -> NounPhrase | None:
    """The noun phrase that a text is, if it is one of at most so many words."""
    words = words_of(text, 0, len(text))
    phrase = phrase_after(words, 0) if 0 < len(words) <= max_words else None
    return phrase if phrase is not None and phrase.high == len(words) else None


def _end_of(words: Words, low: int) -> int:
    high = low
    while high - low < MAX_WORDS and high < len(words) and (high == low or words.adjacent(high - 1)):
        inner = high > low and (
            (words.lower[high] in _OWNING and _is_inside(words, high + 1))
            or (words.lower[high] in PARTICLES | {"&"} and words.is_capital(high - 1) and words.is_capital(high + 1))
        )
        if not (inner or _is_inside(words, high)) or (high > low and _ends_phrase(words, high)):
            break
        high += 1
    return high


def _ends_phrase(words: Words, at: int) -> bool:
    """Whether a verb begins what follows the phrase: `a platform designed to`, `a tool providing`, `a tool uses`."""
    word, following = words.lower[at], words.at(at + 1)
    if words.is_capital(at):
        return False
    if word == "set" and following in ("in", "up", "on"):
        return True
    if is_participle(word):
        is_end = following in PREPOSITIONS or not following[:1].isalnum()
        return is_end or following in CONJUNCTIONS | DETERMINERS or is_adverb(following)
    goes_on = following in DETERMINERS or words.is_capital(at + 1)
    if is_gerund(word) and (goes_on or following in PREPOSITIONS or is_present_participle(word)):
        return True
    if word[-1] != "s" or not (goes_on or following in PREPOSITIONS or is_open(following)):
        return False
    verb = verb_of(word)
    is_verb = verb.is_third and verb.is_certain and not is_participle(following)
    return is_verb or (goes_on and word in THIRD_PERSONS)


def phrases_after(words: Words, start: int, verbs: Container[str]) -> list[NounPhrase]:
    """The phrases of an enumeration from word `start` on: `Kafka, Redis and SQLite`; one where it is none.

    A phrase that a word of `verbs` follows is the subject of the next clause.
    """
    first = phrase_after(words, start)
    if first is None:
        return []
    found = [first]
    while len(found) < MAX_JOINED:
        comma = words.at(found[-1].high) == ","
        onward = found[-1].high + comma
        is_last = words.at(onward) in ("and", "&")
        is_clause = comma and is_last and len(found) == 1
        further = phrase_after(words, onward + is_last) if (comma or is_last) and not is_clause else None
        if further is None or further.after in verbs or is_participle(further.after) or _is_verbal(further, verbs):
            break
        if further.has_of and singular(further.head) in NOUNS:
            break  # `Ann Bell, head of the group`: the same
        found.append(further)
        if is_last:
            return found
    return [first]


def _is_verbal(phrase: NounPhrase, verbs: Container[str]) -> bool:
    """Whether a phrase begins with a verb: `and provides`, `and starring Ada`."""
    first = phrase.words.lower[phrase.low]
    if phrase.determiner or phrase.words.is_capital(phrase.low):
        return False
    return first in verbs or is_gerund(first) or (is_participle(first) and phrase.size == 1)
