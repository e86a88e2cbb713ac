"""The sentences of a chunk, and those that are evidence: that name an entity, or state a fact."""

import re
from collections.abc import Collection
from functools import lru_cache

from indexer.chunking.sentences import sentence_spans
from query_api.query.analysis import normalise_text

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
        if f" {name} " in f" {normalise_text(sentence)} ":
            return sentence
    return None


def sentence_stating(text: str, predicate: str) -> str | None:
    """The first sentence of the text that holds the predicate's words, as `Superseded-By: 435` does."""
    words = predicate.replace("_", " ").casefold()
    return next((sentence for sentence in sentences_of(text) if words in sentence.casefold().replace("-", " ")), None)


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
