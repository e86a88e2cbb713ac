"""What a query may have meant: words that the collection does not hold, with the nearest ones that it does."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

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

_WORD = re.compile(r"(?<![\w./@#-])[^\W\d_]{2,}(?![\w/@#-]|\.\w)")


def suggested(
    text: TextSnapshot, query: str, idf: Mapping[int, float], found: Sequence[str], scope: Scope
) -> str | None:
    """The query with a word for each that no passage of the collection holds and that may be misspelt; None where there
    is none to suggest. `idf` has the terms of the query, `found` are passages found for it. Blocks.

    Candidates are the words one error away (a letter too many, too few, another, or two in each other's place), and all
    of the passages found: up to two errors away in long words. Names in capitals, identifiers and numbers are left.
    """
    unknown = [word for word in dict.fromkeys(_WORD.findall(query)) if _may_be_misspelt(word, idf)]
    better = {word: _nearest(text, word, found, scope) or word for word in unknown[:MAX_WORDS]}
    suggestion = _WORD.sub(lambda match: better.get(match[0], match[0]), query)
    return None if suggestion == query else suggestion


def _may_be_misspelt(word: str, idf: Mapping[int, float]) -> bool:
    terms = query_terms(word)
    is_word = len(word) >= MIN_LETTERS and word[1:] == word[1:].lower()
    return is_word and len(terms) == 1 and idf.get(terms[0]) == 0


def _nearest(text: TextSnapshot, word: str, found: Sequence[str], scope: Scope) -> str | None:
    everywhere, typed = Scope(scope.collection), _plain(word)
    passages = list(found[:MAX_READ]) or [
        each.passage_id for each in text.keyword_search("", MAX_READ, everywhere, of_all=True)
    ]
    letters = Counter("".join(row.text for row in text.passages(passages).values()).lower())
    alphabet = [sign for sign, _ in letters.most_common() if sign.isalpha()][:MAX_ALPHABET]
    known = text.known_words(list(_one_error_from(typed, alphabet)))
    counts = zip(text.passages_holding(known, everywhere.collection), known, strict=True)
    for _, likely in sorted(counts, reverse=True)[:MAX_LIKELY]:
        passages += [each.passage_id for each in text.keyword_search(likely, 1, everywhere)]
    rows = text.passages(passages).values()
    held = {each for row in rows for each in _WORD.findall(" ".join((row.title, *row.section, row.text)))}
    most = 2 if len(word) >= LETTERS_OF_TWO_ERRORS else 1
    far = {each: OSA.distance(typed, _plain(each), score_cutoff=most) for each in held}
    near = [each for each in held if 0 < far[each] <= most]
    count = dict(zip(near, text.passages_holding(near, everywhere.collection), strict=True))
    unlike = {each: each[0].isupper() != word[0].isupper() for each in near}
    return min(near, key=lambda each: (far[each], -count[each], unlike[each], each), default=None)


def _plain(word: str) -> str:
    return word.lower() if word.isascii() else phrase_of(word)


def _one_error_from(word: str, alphabet: Sequence[str]) -> set[str]:
    cuts = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    others = {head + letter + rest for head, tail in cuts for letter in alphabet for rest in (tail, tail[1:])}
    return others | {head + rest for head, tail in cuts for rest in (tail[1:], tail[1:2] + tail[:1] + tail[2:])}
