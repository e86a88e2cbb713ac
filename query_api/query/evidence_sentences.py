"""The sentences of a chunk, and those that are evidence: that name an entity, or state a fact."""

import re
from collections.abc import Collection
from functools import lru_cache

from indexer.chunking.sentences import sentence_spans
from query_api.query.analysis import has_words, normalise_text

MAX_CACHED_CHUNKS = 2_048
_LETTERS = re.compile(r"\w+")


def written_in(text: str, name: str) -> str | None:
    """A normalised name as the text writes it, with other case and other signs between its words."""
    words, lower = name.split(), text.lower()
    if not words or not all(word in lower for word in words):
        return None
    at = lower.find(name)
    if at >= 0 and len(lower) == len(text):
        return text[at : at + len(name)]
    written = re.search(r"\W+".join(map(re.escape, words)), text, re.IGNORECASE)
    return None if written is None else written.group()


def sentence_naming(text: str, name: str) -> str | None:
    """The first sentence of the text that holds the normalised name as whole words."""
    sentences = sentences_of(text) if name else ()
    letters = max(_LETTERS.findall(name), key=len, default="")
    for sentence in sentences:
        plain = sentence.isascii() and "&" not in sentence  # then normalising makes no letters that were not there
        if plain and letters not in sentence.lower():
            continue
        if has_words(sentence, name):
            return sentence
    return None


def sentence_of_fact(text: str, predicate: str, end: str, other: str, *, is_stated: bool = True) -> str | None:
    """The sentence that states a fact of two normalised names, `other` in it: one that holds both, rather with
    the predicate's words; else one with these and `other`, or its number (`Superseded-By: 435`); else one with `other`;
    None where none has it. Of a fact that no sentence states, as in front matter, one with the predicate's words.
    """
    stated, number = predicate.replace("_", " ").casefold(), other.rpartition(" ")[2]
    best, most = None, 0
    for sentence in sentences_of(text) if other else ():
        words = f" {normalise_text(sentence)} "
        names_other, says_so = f" {other} " in words, stated in sentence.casefold().replace("-", " ")
        if not (is_stated or says_so):
            continue
        if names_other and f" {end} " in words:
            value = 3 + says_so
        else:
            value = 2 if says_so and f" {number} " in words else int(names_other)
        if value > most:
            best, most = sentence, value
    return best


@lru_cache(MAX_CACHED_CHUNKS)
def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a chunk, which many hits' paths may begin with."""
    return tuple(text[start:end] for start, end in sentence_spans(text))


def sentence_holding(text: str, names: Collection[str]) -> str | None:
    """The sentence of the text that holds the most of these normalised names, the first of equal ones; None where none
    holds any."""
    best, most = None, 0
    for sentence in sentences_of(text):
        words = f" {normalise_text(sentence)} "
        held = sum(f" {name} " in words for name in names if name)
        if held > most:
            best, most = sentence, held
    return best
