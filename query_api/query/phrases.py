"""Quoted phrases and exclusions in a query: `"gate opens" -draft -"first draft"`; and which texts hold a phrase."""

import re
from functools import cached_property, lru_cache
from typing import NamedTuple

from indexer.text_analysis import terms_of, words_with_terms
from query_api.index.text.text_segments import Scope
from query_api.index.text.text_snapshot import TextSnapshot
from schemas.ids import DocumentKey

MOST_READ = 10_000  # passages that may hold a phrase, those that its words fit best
MOST_FOUND = 2**31
MAX_SEARCH_WORDS = 8  # beside phrases; more than so many are prose
MIN_LETTERS = 3  # of an excluded word; fewer are a command's flag, as in `rm -rf`
MAX_CACHED_QUERIES = 256

_INSIDE = (
    r"(?<!\w)\"(?P<straight>[^\"]+)\"(?!\w)|(?<!\w)[“„](?P<curly>[^“”„]+)[”“](?!\w)|«(?P<angle>[^«»]+)»"
    r"|»(?P<inward>[^«»]+)«|「(?P<corner>[^「」]+)」|『(?P<double>[^『』]+)』"
)
_OPERATORS = re.compile(rf"(?P<no>(?<!\S)-)?(?:{_INSIDE})|(?<!\S)-(?P<word>[^\W\d_][^\s\"“„«»「『]*)")
_WORD = re.compile(r"\w+")
_QUESTION = re.compile(
    r"\W*(?:what|how|when|where|why|who|whose|whom|which|is|are|was|were|do|does|did|has|have|had|can|could|may|might"
    r"|must|shall|should|will|would|over|in\s+(?:what|which))\b.*|.*[?？]\s*$",
    re.IGNORECASE | re.DOTALL,
)
_UNSPACED = re.compile("[\u0e00-\u0eff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")  # scripts without blanks


class Query(NamedTuple):
    """`text` is what is searched for, quotation marks and all, without exclusions; `excluded` words and phrases. In a
    question, quotation marks may as well mark a title or what somebody said."""

    text: str
    phrases: tuple[str, ...]
    excluded: tuple[str, ...]
    is_question: bool


@lru_cache(MAX_CACHED_QUERIES)
def read_query(text: str) -> Query:
    """`-word` and `-"a phrase"` exclude, after a blank; not numbers (`-5`), flags (`-rf`, `--force`) and lone dashes.
    Of one of exclusions only the `text` is empty."""
    phrases: list[str] = []
    excluded: list[str] = []
    kept, end = [], 0
    for match in _OPERATORS.finditer(text):
        word = (match["word"] or "").rstrip(".,;:!?)]}")
        quoted = next((match[name] for name in _QUOTES if match[name]), "").strip()
        is_flag = match["word"] and word.isascii() and len(word) < MIN_LETTERS
        if is_flag or not _WORD.search(word or quoted):
            continue
        if match["no"] or word:
            excluded.append(word or quoted)
            kept.append(text[end : match.start()])
            end = match.end()
        else:
            phrases.append(quoted)
    rest = " ".join([*kept, text[end:]]).strip() if excluded else text
    outside = len(_WORD.findall(_OPERATORS.sub(" ", rest)))
    is_question = outside > MAX_SEARCH_WORDS or _QUESTION.match(rest) is not None
    return Query(
        rest if _WORD.search(rest) else "", tuple(dict.fromkeys(phrases)), tuple(dict.fromkeys(excluded)), is_question
    )


_QUOTES = ("straight", "curly", "angle", "inward", "corner", "double")


def unquoted(text: str) -> str:
    """The text with blanks for its phrases, so that nothing is read from within them."""
    return _OPERATORS.sub(lambda match: " " * len(match[0]), text)


class _AnyTerm:
    def __contains__(self, _term: object) -> bool:
        return True


class Phrase:
    """Words that stand together: in any case, with any blanks, punctuation and line ends between; as written, else by
    the terms of the keyword channel, so with other endings or accents. Stop words count."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.terms = tuple(terms_of(words))
        self._content, self._between = _sequence(words, _AnyTerm())

    @property
    def is_certain(self) -> bool:
        """Whether a text that has its only term holds it."""
        return len(self.terms) == 1 and self._between == [[], []]

    @cached_property
    def _written(self) -> re.Pattern[str]:
        spelt = [
            r"\s*".join(map(re.escape, word)) if _UNSPACED.search(word) else re.escape(word)
            for word in _WORD.findall(self.words)
        ]
        begin = "" if _UNSPACED.match(self.words) else r"(?<!\w)"
        end = "" if _UNSPACED.match(self.words[-1:]) else r"(?!\w)"
        return re.compile(begin + r"[\W_]+".join(spelt) + end, re.IGNORECASE)

    def is_in(self, text: str) -> bool:
        return self._written.search(text) is not None or (bool(self.terms) and self._is_in_by_terms(text))

    def _is_in_by_terms(self, text: str) -> bool:
        content, between = _sequence(text, frozenset(self.terms))
        size = len(self._content)
        lead, trail = self._between[0], self._between[-1]
        return any(
            content[at : at + size] == self._content
            and between[at + 1 : at + size] == self._between[1:-1]
            and (not lead or between[at][-len(lead) :] == lead)
            and between[at + size][: len(trail)] == trail
            for at in range(len(content) - size + 1)
        )


def _sequence(text: str, wanted: "frozenset[int] | _AnyTerm") -> tuple[list[tuple[int, ...]], list[list[str]]]:
    """The terms of the words with wanted terms, and the other words before, between and behind these."""
    content, between, end = [], [], 0
    for start, finish, terms in words_with_terms(text, 0, len(text), wanted):
        between.append(_WORD.findall(text[end:start].casefold()))
        content.append(terms)
        end = finish
    return content, [*between, _WORD.findall(text[end:].casefold())]


def passages_holding(text: TextSnapshot, phrase: Phrase, scope: Scope) -> dict[str, DocumentKey]:
    """The passages of a scope that hold a phrase in their text, a heading or the title, with their documents. Blocks;
    raises TransientStoreError."""
    most = MOST_FOUND if phrase.is_certain else MOST_READ
    found = {each.passage_id: each.key for each in text.keyword_search(phrase.words, most, scope, of_all=True)}
    if phrase.is_certain:
        return found
    rows = text.passages(found)
    return {
        name: found[name] for name, row in rows.items() if any(map(phrase.is_in, (row.text, row.title, *row.section)))
    }
