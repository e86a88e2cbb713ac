"""Pairs of names that may be the same entity, for a person to decide; found by blocking, never by comparing all.

Each entity is in a few blocks: its rarer words, pairs of words, initials with the family name, the acronym, the
letters without blanks. Candidates of an entity are the members of its blocks, the smallest blocks first, and at most
`MOST_COMPARED` of them are compared, so that the cost of an entity does not grow with the graph. Misspelt words are
found among the known words by their deletion neighbourhoods (Garbe, SymSpell 2012; Mor and Fraenkel 1982).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import OSA
from rapidfuzz.fuzz import ratio

from indexer.extraction.lexicon import HONORIFICS, word_set
from indexer.resolution.keys import resolution_key, singular, types_agree

MIN_SCORE = 0.5
MOST_COMPARED = 24
MOST_IN_BLOCK = 24
MOST_WORDS = 8
MAX_NAME_CHARACTERS = 200
STATED = 0.9  # the score of a pair that a document states
SIMILAR, SAME = 0.8, 0.95  # cosines of names
CODE = "identifier"  # the type of names in code, where each letter counts
MIN_FUZZY_CHARACTERS = 4
DELETION_CHARACTERS = 9  # of a word's beginning that deletions are made of
MOST_SIMILAR_WORDS = 6
MIN_LETTER_SIMILARITY = 0.84
MOST_INITIALS = 3  # written together, as in `JRR`
MIN_LETTERS = 6  # of a name in which one letter may differ, whatever share of it that is

_SMALL_WORDS = word_set("the a an of and for in on at to by with from de la le du des der die das von van & or")
_CONFUSABLE = str.maketrans(
    "аеорсухіјѕԁһӏьвкмнтαονρτυκιχ", "aeopcyxijsdhlbbkmhtaovptukix"
)  # Cyrillic and Greek letters that look like Latin ones: Unicode Technical Standard 39


Block = TypeVar("Block")


class NamedEntity(NamedTuple):
    """An entity to resolve: `name` as people write it, `type` "" for unknown, `mentions` how often it is mentioned,
    `same` the ids of those that documents say are the same."""

    id: str
    collection: str
    name: str
    type: str
    mentions: int
    same: frozenset[str] = frozenset()


class CandidatePair(NamedTuple):
    """Two entities that may be the same, `first` < `second`; `score` in (0, 1], `reason` a sentence."""

    first: str
    second: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class _Form:
    """What of a name is compared. `words` are in the singular, without small words and titles of persons."""

    entity: NamedEntity
    key: str
    words: tuple[str, ...]
    letters: str
    digits: tuple[str, ...]
    initials: frozenset[str]
    acronym: str


class CandidateIndex:
    """The entities of one collection, and which of them may be the same.

    The candidates depend on what is in it, not on the order of additions and removals. Not thread-safe.
    """

    def __init__(self, entities: Iterable[NamedEntity] = ()) -> None:
        self._forms: dict[str, _Form] = {}
        self._blocks: dict[str, set[str] | str] = {}
        self._words: dict[str, int] = {}
        self._deletions: dict[str, set[str] | str] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._matrix: tuple[list[str], NDArray[np.float32]] | None = None
        for entity in entities:
            self.add(entity)

    def __len__(self) -> int:
        return len(self._forms)

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._forms

    def add(self, entity: NamedEntity, vector: NDArray[np.float32] | None = None) -> None:
        """Add an entity, or replace it; `vector`, (dimension,) float32 of norm 1, is that of its name. One whose name
        has no letter, or over 200 characters, has no candidates."""
        self.remove(entity.id)
        if vector is not None:
            self._vectors[entity.id], self._matrix = vector, None
        form = _form(entity)
        if form is None:
            return
        self._forms[entity.id] = form
        for block in _blocks(form):
            _put(self._blocks, block, entity.id)
        for word in form.words:
            self._words[word] = self._words.get(word, 0) + 1
            if self._words[word] == 1:
                for deletion in _deletions(word):
                    _put(self._deletions, deletion, word)

    def remove(self, identifier: str) -> None:
        """Nothing where it is not there."""
        if self._vectors.pop(identifier, None) is not None:
            self._matrix = None
        form = self._forms.pop(identifier, None)
        if form is None:
            return
        for block in _blocks(form):
            _take(self._blocks, block, identifier)
        for word in form.words:
            self._words[word] -= 1
            if not self._words[word]:
                del self._words[word]
                for deletion in _deletions(word):
                    _take(self._deletions, deletion, word)

    def candidates(self, identifier: str, min_score: float = MIN_SCORE) -> list[CandidatePair]:
        """The pairs of this entity with others, the best first. None for one that is not here."""
        form = self._forms.get(identifier)
        if form is None:
            return []
        cosines = self._cosines(identifier)
        near = {other: self._forms[other] for other in (*form.entity.same, *cosines) if other in self._forms}
        near |= {other: self._forms[other] for other in self._near(form)}
        near.pop(identifier, None)
        pairs = (_compared(form, each, cosines.get(other, 0.0)) for other, each in near.items())
        return sorted((pair for pair in pairs if pair is not None and pair.score >= min_score), key=_best_first)

    def pairs(self, min_score: float = MIN_SCORE) -> list[CandidatePair]:
        """All pairs, the best first."""
        found = {pair[:2]: pair for identifier in self._forms for pair in self.candidates(identifier, min_score)}
        return sorted(found.values(), key=_best_first)

    def _cosines(self, identifier: str) -> dict[str, float]:
        """Of its name to the names that are similar in meaning."""
        if (vector := self._vectors.get(identifier)) is None:
            return {}
        ids, matrix = self._matrix = self._matrix or (list(self._vectors), np.stack(list(self._vectors.values())))
        cosines = matrix @ vector
        return {ids[at]: float(cosines[at]) for at in np.flatnonzero(cosines > SIMILAR).tolist()}

    def _near(self, form: _Form) -> Iterator[str]:
        """The others that share a block with it, at most MOST_COMPARED: those of small blocks first, then by id."""
        blocks = [*_blocks(form), *self._blocks_of_misspellings(form)]
        members = [self._blocks[block] for block in dict.fromkeys(blocks) if block in self._blocks]
        lists = [[each] if isinstance(each, str) else sorted(each) for each in members if _size(each) <= MOST_IN_BLOCK]
        lists.sort(key=lambda each: (len(each), each))
        found = dict.fromkeys(other for each in lists for other in each)
        found.pop(form.entity.id, None)
        return islice(found, MOST_COMPARED)

    def _blocks_of_misspellings(self, form: _Form) -> Iterator[str]:
        """The blocks in which it would be with one of its words spelt as another word that is known."""
        words = form.words[:MOST_WORDS]
        for at, word in enumerate(words):
            for other in self._similar_words(word):
                yield f"w {other}" if len(words) > 1 else f"l {other}"
                for beside in words[:at] + words[at + 1 :]:
                    yield _pair_block(beside, other)

    def _similar_words(self, word: str) -> list[str]:
        """Known words that differ in one letter, or in two neighbours changed: the rarest, then by name."""
        found: set[str] = set()
        for deletion in _deletions(word):
            near = self._deletions.get(deletion, ())
            if _size(near) <= MOST_IN_BLOCK:
                found.update([near] if isinstance(near, str) else near)
        found.discard(word)
        similar = [other for other in found if OSA.distance(word, other, score_cutoff=1) <= 1]
        return sorted(similar, key=lambda other: (self._words[other], other))[:MOST_SIMILAR_WORDS]


def _best_first(pair: CandidatePair) -> tuple[float, str, str]:
    return -pair.score, pair.first, pair.second


def _size(members: set[str] | str | tuple[str, ...]) -> int:
    return 1 if isinstance(members, str) else len(members)


def _put(blocks: dict[Block, set[str] | str], block: Block, member: str) -> None:
    """Most blocks have one member, stored without a set, which takes 216 bytes."""
    members = blocks.get(block)
    if members is None or members == member:
        blocks[block] = member
    elif isinstance(members, str):
        blocks[block] = {members, member}
    else:
        members.add(member)


def _take(blocks: dict[Block, set[str] | str], block: Block, member: str) -> None:
    members = blocks.get(block)
    if members == member:
        del blocks[block]
    elif isinstance(members, set):
        members.discard(member)
        if len(members) == 1:
            blocks[block] = members.pop()


def compared_words(plain: Sequence[str], entity_type: str) -> list[str]:
    """Without small words; of a person without an honorific, else in the singular."""
    words = [word for word in plain if word not in _SMALL_WORDS]
    if entity_type != "person":
        return [singular(word) for word in words]
    return words[1:] if len(words) > 2 and words[0] in HONORIFICS else words


def _form(entity: NamedEntity) -> _Form | None:
    key = resolution_key(entity.name, entity.type) if len(entity.name) <= MAX_NAME_CHARACTERS else ""
    plain = list(filter(None, (word.strip(".") for word in key.split())))
    words = compared_words(plain, entity.type)
    if not words:
        return None
    letters = "".join(words).translate(_CONFUSABLE)
    digits = tuple(word for word in plain if any(map(str.isdigit, word)))
    initials = frozenset("".join(word[0] for word in each) for each in (plain, words) if len(each) > 1)
    acronym = letters if len(plain) == 1 and _is_acronym(entity.name) else ""
    return _Form(entity, key, tuple(words), letters, digits, initials, acronym)


def _is_acronym(word: str) -> bool:
    bare = word.replace(".", "").strip()
    return 2 <= len(bare) <= 8 and bare.isupper() and bare.isalpha()


def _blocks(form: _Form) -> Iterator[str]:
    """Their kinds: letters, words, pairs of words, initials of all words, initial and last word."""
    words = form.words[:MOST_WORDS]
    yield f"l {form.letters}"
    for word in words:
        yield f"w {word}"
    for first, second in combinations(words, 2):
        yield _pair_block(first, second)
    for acronym in {*form.initials, form.acronym} - {""}:
        yield f"a {acronym}"
    for word in form.words[: min(MOST_WORDS, len(form.words) - 1)]:
        yield f"i {word[0]} {form.words[-1]}"


def _pair_block(first: str, second: str) -> str:
    return f"p {min(first, second)} {max(first, second)}"


def _deletions(word: str) -> set[str]:
    """The beginning of a word, and it with one letter left out."""
    if len(word) < MIN_FUZZY_CHARACTERS or any(map(str.isdigit, word)):
        return set()
    beginning = word[:DELETION_CHARACTERS]
    return {beginning, *(beginning[:at] + beginning[at + 1 :] for at in range(len(beginning)))}


def _compared(one: _Form, other: _Form, cosine: float) -> CandidatePair | None:
    """The pair with the best of its reasons; None where nothing speaks for it, or its types, numbers or brackets
    against it, which a document that states it overrules."""
    first, second = sorted((one, other), key=lambda form: form.entity.id)
    names, types = f"{first.entity.name!r} and {second.entity.name!r}", (one.entity.type, other.entity.type)
    distinguished = one.key == other.key and one.entity.name.endswith(")") and other.entity.name.endswith(")")
    agree = types_agree(*types) and not distinguished
    reasons = list(_reasons(first, second)) if agree else []
    if cosine > SIMILAR and agree and "person" not in types and one.digits == other.digits:
        is_form_equal = cosine > SAME and len(one.words) == len(other.words)
        reasons.append((cosine if is_form_equal else cosine - 0.2, f"{names} are similar in meaning."))
    if first.entity.id in second.entity.same:
        reasons.append((STATED, f"A document states that {names} are one."))
    found = max(reasons, default=None)
    return None if found is None else CandidatePair(first.entity.id, second.entity.id, *found)


def _may_be_misspelt(shorter: _Form, longer: _Form, similarity: float) -> bool:
    """Whether one may be the other with a wrong letter; code is never."""
    if CODE in {shorter.entity.type, longer.entity.type}:
        return False
    one_letter = (
        len(longer.letters) >= MIN_LETTERS and OSA.distance(shorter.letters, longer.letters, score_cutoff=1) <= 1
    )
    return (similarity >= MIN_LETTER_SIMILARITY or one_letter) and _differ_in_spelling(shorter.words, longer.words)


def _reasons(one: _Form, other: _Form) -> Iterator[tuple[float, str]]:
    shorter, longer = sorted((one, other), key=lambda form: (len(form.words), form.entity.id))
    names = f"{one.entity.name!r} and {other.entity.name!r}"
    if shorter.acronym and shorter.acronym in longer.initials:
        yield 0.8, f"{shorter.entity.name!r} may be short for {longer.entity.name!r}."
    if one.digits != other.digits:
        return  # `iPhone 4` and `iPhone 5`
    if one.letters == other.letters:
        yield 0.95, f"{names} differ at most in blanks, punctuation, look-alike letters, or singular and plural."
        return
    if sorted(one.words) == sorted(other.words):
        yield 0.9, f"{names} are the same words in another order."
        return
    if initials_fit(shorter.words, longer.words) or initials_fit(longer.words, shorter.words):
        yield 0.75, f"In {names}, initials of one may stand for words of the other."
    similarity = ratio(one.letters, other.letters) / 100
    if _may_be_misspelt(shorter, longer, similarity):
        yield similarity - 0.05, f"{names} differ in a letter or two."
    common = set(one.words) & set(other.words)
    overlap = len(common) / len(set(one.words) | set(other.words))
    if all(map(str.isdigit, common)):
        return  # `Chapter 3` and `May 3`
    if len(common) == len(set(shorter.words)) and (overlap > MIN_SCORE or _is_short_form(shorter, longer)):
        yield 0.5 + 0.3 * overlap, f"{shorter.entity.name!r} is a part of {longer.entity.name!r}."
    elif overlap > MIN_SCORE:
        yield 0.75 * overlap, f"{names} share {len(common)} words."


def _is_short_form(shorter: _Form, longer: _Form) -> bool:
    """Whether people shorten a name so: to the first or the family name, or an organisation of two words to the
    first."""
    ends = longer.words[:: max(1, len(longer.words) - 1)]
    by_type = {"person": ends, "organisation": longer.words[: len(longer.words) == 2]}
    return len(shorter.words) == 1 and shorter.words[0] in by_type.get(longer.entity.type, ())


def _differ_in_spelling(shorter: tuple[str, ...], longer: tuple[str, ...]) -> bool:
    """Whether at most one word of each has no equal in the other, and those are spelt similarly, or only the blanks and
    endings differ; two names of persons that share a family name are not a misspelling of each other."""
    left = [word for word in shorter if word not in longer]
    right = [word for word in longer if word not in shorter]
    if len(left) == len(right) == 1:
        length = max(len(left[0]), len(right[0]))
        return length >= MIN_FUZZY_CHARACTERS and OSA.distance(left[0], right[0]) <= (1 if length < 9 else 2)
    return bool(left and right) and OSA.distance("".join(sorted(left)), "".join(sorted(right))) <= 1


def initials_fit(initialled: tuple[str, ...], full: tuple[str, ...]) -> bool:
    """Whether the names differ in the words before the last alone, and each of `initialled` there is an initial, or a
    word, of `full`, in order: `j okafor` in `maria j okafor`, `jrr tolkien` in `john ronald reuel tolkien`."""
    if len(initialled) < 2 or len(full) < 2 or initialled[-1] != full[-1]:
        return False
    given = iter(full[:-1])
    used_initial = False
    for part in initialled[:-1]:
        pieces = [part] if len(part) == 1 or part in full else list(part)
        if len(pieces) > MOST_INITIALS:
            return False
        for piece in pieces:
            if not any(word == piece or (len(piece) == 1 and word.startswith(piece)) for word in given):
                return False
            used_initial |= len(piece) == 1
    return used_initial
