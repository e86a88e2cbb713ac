"""Quoted phrases and exclusions in a query: `"gate opens" -draft -"first draft"`; and which texts hold a phrase."""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from indexer.text_analysis import terms_of
from query_api.index.text.field_index import phrase_of
from query_api.index.text.text_segments import Scope
from query_api.index.text.text_snapshot import TextSnapshot
from schemas.ids import DocumentKey

MOST_READ = 10_000  # passages that may hold a phrase, those that its words fit best
MOST_FOUND = 2**31
MAX_SEARCH_WORDS = 8  # beside phrases; more than so many are prose
MIN_LETTERS = 3  # of an excluded word; fewer are a command's flag, as in `rm -rf`
MAX_CACHED_QUERIES = 256

_QUOTED = r"(?<!\w)\"[^\"]+\"(?!\w)|(?<!\w)[“„][^“”„]+[”“](?!\w)|«[^«»]+»|»[^«»]+«|「[^「」]+」|『[^『』]+』"
_OPERATORS = re.compile(rf"(?P<no>(?<!\S)-)?(?:{_QUOTED})|(?<!\S)-(?P<word>[^\W\d_][^\s\"“„«»「『]*)")
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
        is_word = match["word"] is not None
        words = match["word"].rstrip(".,;:!?)]}") if is_word else match[0].removeprefix("-")[1:-1].strip()
        is_flag = is_word and words.isascii() and len(words) < MIN_LETTERS
        if is_flag or not _WORD.search(words):
            continue
        if is_word or match["no"]:
            excluded.append(words)
            kept.append(text[end : match.start()])
            end = match.end()
        else:
            phrases.append(words)
    rest = " ".join([*kept, text[end:]]).strip() if excluded else text
    outside = len(_WORD.findall(_OPERATORS.sub(" ", rest)))
    is_question = outside > MAX_SEARCH_WORDS or _QUESTION.match(rest) is not None
    return Query(
        rest if _WORD.search(rest) else "", tuple(dict.fromkeys(phrases)), tuple(dict.fromkeys(excluded)), is_question
    )


def unquoted(text: str) -> str:
    """The text with blanks for its phrases, so that nothing is read from within them."""
    return _OPERATORS.sub(lambda match: " " * len(match[0]), text)


def holds(text: str, phrase: str) -> bool:
    """Whether words are next to each other in a text as they are written, but for case, accents, blanks and
    punctuation; in scripts without blanks also within words."""
    wanted, likely = _wanted(phrase)
    if text.isascii() and not likely.search(text.lower()):
        return False  # without taking it apart
    held = _plain(text)
    if _UNSPACED.search(phrase):
        return wanted.replace(" ", "") in held.replace(" ", "")
    return f" {wanted} " in f" {held} "


@lru_cache(MAX_CACHED_QUERIES)
def _wanted(phrase: str) -> tuple[str, re.Pattern[str]]:
    wanted = _plain(phrase)
    return wanted, re.compile(r"[\W_0]*".join(map(re.escape, wanted.split())))


def _plain(text: str) -> str:
    return phrase_of(unicodedata.normalize("NFC", text))


def passages_holding(
    text: TextSnapshot, phrase: str, scope: Scope, *, any_form: bool = False
) -> dict[str, DocumentKey]:
    """The passages of a scope that hold a phrase in their text, a heading or the title, with their documents; one word
    in `any_form`, as the keyword channel reads it. Blocks; raises TransientStoreError."""
    is_read = not any_form or len(terms_of(phrase)) != 1 or len(_WORD.findall(phrase)) > 1
    candidates = text.keyword_search(phrase, MOST_READ if is_read else MOST_FOUND, scope, of_all=True)
    found = {each.passage_id: each.key for each in candidates}
    if not is_read:
        return found
    return {
        name: found[name]
        for name, row in text.passages(found).items()
        if any(holds(part, phrase) for part in (row.text, row.title, *row.section))
    }
