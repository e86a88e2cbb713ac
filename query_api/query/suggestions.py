"""What a query may have meant: words that the collection does not hold, with the nearest ones that it does."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rapidfuzz.distance import OSA

from indexer.text_analysis import query_terms
from query_api.index.text.field_index import phrase_of
from query_api.index.text.text_segments import Scope
from query_api.index.text.text_snapshot import TextSnapshot

MIN_LETTERS = 5  # of a word that may be misspelt
LETTERS_OF_TWO_ERRORS = 8
MAX_WORDS = 2  # of a query that are looked at
MAX_ALPHABET = 32  # the commonest letters of what was found: those of the documents' script
MAX_READ = 16  # passages
MAX_LIKELY = 3  # words by one error, whose passages are read

_WORD = re.compile(r"[^\W\d_]{2,}")


def suggested(
    text: TextSnapshot, query: str, idf: Mapping[int, float], found: Sequence[str], scope: Scope
) -> str | None:
    """The query with a word for each that no passage of the collection holds and that may be misspelt; None where there
    is none to suggest. `idf` has the terms of the query, `found` are passages found for it. Blocks.

    Candidates are the words one error away (a letter too many, too few, another, or two in each other's place), and all
    of the passages found: up to two errors away in long words. Names in capitals, identifiers and numbers are left.
    """
    unknown = [word for word in dict.fromkeys(_WORD.findall(query)) if _may_be_misspelt(word, query, idf)]
    better: dict[str, str] = {}
    for word in unknown[:MAX_WORDS]:
        nearest = _nearest(text, word, found, scope)
        if nearest is not None:
            better[word] = nearest
    return _WORD.sub(lambda match: better.get(match[0], match[0]), query) if better else None


def _may_be_misspelt(word: str, query: str, idf: Mapping[int, float]) -> bool:
    terms = query_terms(word)
    alone = re.search(rf"(?<![\w./@#-]){word}(?![\w/@#-]|\.\w)", query) is not None
    is_word = len(word) >= MIN_LETTERS and word[1:] == word[1:].lower() and alone
    return is_word and len(terms) == 1 and idf.get(terms[0]) == 0


def _nearest(text: TextSnapshot, word: str, found: Sequence[str], scope: Scope) -> str | None:
    typed = _plain(word)
    any_passages = (each.passage_id for each in text.keyword_search("", MAX_READ, Scope(scope.collection), of_all=True))
    rows = list(text.passages(found[:MAX_READ] or any_passages).values())
    letters = Counter(sign for row in rows for sign in f"{row.title} {row.text}".lower() if sign.isalpha())
    alphabet = "".join(sign for sign, _ in letters.most_common(MAX_ALPHABET))
    known = text.known_words(list(dict.fromkeys(_one_error_from(typed, alphabet))))
    counts = dict(zip(known, text.passages_holding(known, scope.collection), strict=True))
    for likely in sorted((each for each in known if counts[each]), key=lambda each: (-counts[each], each))[:MAX_LIKELY]:
        passages = [each.passage_id for each in text.keyword_search(likely, 1, Scope(scope.collection))]
        rows += text.passages(passages).values()
    held = Counter(each for row in rows for each in _WORD.findall(" ".join((row.title, *row.section, row.text))))
    most = 2 if len(word) >= LETTERS_OF_TWO_ERRORS else 1
    near = ((OSA.distance(typed, _plain(each), score_cutoff=most), each) for each in held)
    best = min(
        ((far, each[0].isupper() != word[0].isupper(), -held[each], each) for far, each in near if 0 < far <= most),
        default=None,
    )
    return None if best is None else best[-1]


def _plain(word: str) -> str:
    return word.lower() if word.isascii() else phrase_of(word)


def _one_error_from(word: str, alphabet: str) -> Iterator[str]:
    for at in range(len(word) + 1):
        head, tail = word[:at], word[at:]
        yield from (head + letter + tail for letter in alphabet)
        yield from (head + letter + tail[1:] for letter in alphabet if tail)
        yield from (head + each for each in (tail[1:], tail[1:2] + tail[:1] + tail[2:]) if tail)
