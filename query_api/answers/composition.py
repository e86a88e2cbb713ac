"""Which sentences make an answer, and in what order."""

import itertools
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.extraction.prose.open_verbs import verb_of
from query_api.answers.features import AskedFor, Titles
from query_api.answers.sentences import Sentence
from query_api.query.analysis import Question, normalise_text

CANDIDATES = 12  # the likeliest, of which sets are tried
SUPPORT = 0.15  # what a sentence that is needed counts beside one that answers
LEAST_SHARE = 0.2  # of the best sentence
_MOST = 0.999
_DEFINED = 0.9
_DEFINED_ELSEWHERE = 0.8
_FRAGMENT, _BARE = 0.5, 0.1
LEAST_SIGNS = 1 / 4  # of the words of code: prose has few, such as names of functions
_SIGNS = re.compile(r"[_={}<>\\~`^]|\w[(\[]|[)\]]\w")
_END = re.compile(r"[.!?…。！？][\"'”’»)\]*_`]*$")
_FIELD = re.compile(r"\W*[^\W\d][\w-]*(?: [\w-]+)?: ?(?:\S+(?:\s+\S+){0,2})?\s*$")  # such as `Status: accepted`
_ROW = re.compile(r".*\S \| \S")
_ONE_WORD = re.compile(r"\W*(?:\d+\W+)?[A-Za-zÀ-ɏͰ-ӿ]+\W*$")  # of scripts with blanks between words
_CAPTION = re.compile(r"\W*(?:figure|fig\.?|table|plate|photo|image|picture)(?!\w)[ .\d]*[:.–—-] ", re.IGNORECASE)
_SOON = 120  # characters between a name and its copula, such as other names in brackets
_DEFINITION = re.compile(r"\W*(?:(?:what|who) (?:is|are|was|were)|define) (?:an? |the )?(.+?)\W*$", re.IGNORECASE)
_ARTICLE = re.compile(r" (?:an?|the) ")
_COPULA = re.compile(r" (?:is|are|was|were) ")
_IS_A = re.compile(r"(?: \S+){0,3}? (?:is|are|was|were) (?:an?|the|one of|any|each|every|short for) ")
_THIS = re.compile(r"This (?:\w+ )??\w+ (?!has\b|does\b)(\w+s)\b")
_EXHAUSTIVE = 3  # sentences up to which every set is tried: 298 of 12


def without_fragments(
    asked_for: AskedFor, sentences: Sequence[Sentence], likely: NDArray[np.float64], titles: Titles
) -> NDArray[np.float64]:
    """`likely`, halved for what is no sentence, such as a word, a heading, a caption or a row of a table, and a tenth
    for code, and for these or a field of front matter where it has nothing of the question that its document's title
    has not, nor what is asked for: no text that the scorer learned from has such. As it is where a time or a number is
    asked for that it has, as a line of a schedule."""
    shares = [_share(asked_for, each, titles.terms[each.hit]) for each in sentences]
    weighed: NDArray[np.float64] = likely * np.array(shares).reshape(-1, 1)
    return weighed


def _share(asked_for: AskedFor, sentence: Sentence, title: frozenset[int]) -> float:
    text = sentence.text
    fits = asked_for.is_in(text)
    is_fragment = _END.search(text) is None or any(form.match(text) for form in (_CAPTION, _ROW, _ONE_WORD))
    if _is_code(text):
        return _BARE
    if (asked_for.is_measured and fits) or not (is_fragment or _FIELD.match(text)):
        return 1.0
    if sentence.terms <= title and (asked_for.kind == "thing" or not fits):
        return _BARE
    return _FRAGMENT if is_fragment else 1.0


def _is_code(text: str) -> bool:
    """Whether it is no sentence, and more of its words than of prose have signs of programs."""
    words = text.split()
    is_sentence = text[:1].isupper() and _END.search(text)
    return not is_sentence and sum(_SIGNS.search(word) is not None for word in words) >= LEAST_SIGNS * len(words)


def with_definitions(
    question: Question, sentences: Sequence[Sentence], likely: NDArray[np.float64], titles: Titles
) -> NDArray[np.float64]:
    """`likely`, where a sentence that defines what the question asks the definition of is likely to answer: of `what is
    a tide?` by .9, in a document that is called so, the first that begins with it and has a copula soon, or that says
    what `this document` does; by .8 elsewhere one that begins with it, a copula and an article."""
    asked = _DEFINITION.match(question.text)
    if asked is None:
        return likely
    topic = f" {normalise_text(asked[1])} "
    raised = likely.copy()
    defined: set[int] = set()
    for at, sentence in enumerate(sentences):
        after = _after(sentence.normalised, topic)
        names = titles.called[sentence.hit]
        if topic in names and f" {normalise_text(sentence.text.partition(':')[2])} " in names - {topic, ""}:
            raised[at, 0] = max(raised[at, 0], _DEFINED_ELSEWHERE)  # `Title: Birds` of PEP 7 – Birds
        elif topic in names:
            presents = _THIS.match(sentence.text)
            is_first = sentence.hit not in defined
            if is_first and (_COPULA.search(after[:_SOON]) or (presents and verb_of(presents[1]).is_third)):
                raised[at, 0] = max(raised[at, 0], _DEFINED)
                defined.add(sentence.hit)
        elif _IS_A.match(after):
            raised[at, 0] = max(raised[at, 0], _DEFINED_ELSEWHERE)
    return raised


def _after(text: str, topic: str) -> str:
    """What comes after this topic in a text that begins with it, or with an article and it; else nothing."""
    article = _ARTICLE.match(text)
    rest = text[article.end() - 1 :] if article else text
    return rest[len(topic) - 1 :] if rest.startswith(topic) else ""


def choose(sentences: Sequence[Sentence], likely: NDArray[np.float64], most: int, most_words: int) -> list[int]:
    """The numbers of at most `most` sentences of at most `most_words` words together, which most likely hold the
    answer: the set with the highest Σ .15 s - ln(1 - a), where a is how likely each answers and s how likely it is
    needed. Of more than three the best three are chosen so, and the others one by one. A sentence of which a + s / 2 is
    less than a fifth of the highest is left out."""
    worth = SUPPORT * likely[:, 1] - np.log1p(-np.minimum(likely[:, 0], _MOST))
    fit = likely[:, 0] + likely[:, 1] / 2
    order = [at for at in np.argsort(-worth, kind="stable").tolist() if fit[at] >= LEAST_SHARE * fit.max()][:CANDIDATES]
    words = [sentence.words for sentence in sentences]
    chosen: tuple[int, ...] = ()
    best = -1.0
    for size in range(min(most, _EXHAUSTIVE), 0, -1):
        for some in itertools.combinations(order, size):
            together = float(sum(worth[at] for at in some))
            if together > best and sum(words[at] for at in some) <= most_words:
                chosen, best = some, together
    left = most_words - sum(words[at] for at in chosen)
    kept = list(chosen)
    for at in order:
        if len(kept) < most and at not in kept and words[at] <= left:
            kept.append(at)
            left -= words[at]
    return kept


def in_order(sentences: Sequence[Sentence], titles: Titles) -> list[int]:
    """The numbers of these sentences as a chain: first the hit whose title the question names, else the best; then
    rather one whose title a sentence before it names; those of one hit in its own order."""
    rest = sorted({sentence.hit for sentence in sentences}, key=lambda hit: (not titles.asked[hit], hit))
    order: list[int] = []
    named: set[int] = set()
    while rest:
        hit = next((each for each in rest if each in named), rest[0])
        rest.remove(hit)
        own = [number for number, sentence in enumerate(sentences) if sentence.hit == hit]
        order += sorted(own, key=lambda number: sentences[number].start)
        named.update(at for number in own for at, names in enumerate(titles.named_in(sentences[number])) if names)
    return order
