"""Keyphrases: terms that a document emphasises, has as headings or repeats, and all their occurrences."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from indexer.documents import ParsedDocument, Section
from indexer.extraction.lexicon import SENTENCE_STARTERS, STOP_WORDS, is_part_of_document
from indexer.extraction.names import PART, Name, name_of

MAX_EMPHASISED = 400
MAX_REPEATED = 30
MIN_REPETITIONS = 3
MIN_TOKENS = 200
MAX_WORDS = 4
MAX_TERM_CHARACTERS = 80
MAX_TERM_TOKENS = 8
MAX_OCCURRENCES = 20_000
MAX_CHARACTERS = 2_000_000

_TOKEN = re.compile(r"(\w+(?:['’-]\w+)*|[^\w\s]|\n)")


class Tokens(NamedTuple):
    """A document's words in lower case and its punctuation, with their offsets."""

    words: list[str]
    starts: list[int]
    ends: list[int]


def tokens_of(text: str) -> Tokens:
    """The tokens of the first MAX_CHARACTERS."""
    pieces = _TOKEN.split(text[:MAX_CHARACTERS])  # alternately what is between tokens, and a token
    bounds = list(accumulate(map(len, pieces)))
    return Tokens(list(map(str.lower, pieces[1::2])), bounds[:-1:2], bounds[1::2])


def topic_headings(sections: Iterable[Section]) -> Iterator[tuple[int, str]]:
    """(start of its section, heading) of each heading that names a subject, unlike `Introduction`."""
    for section in sections:
        if section.headings:
            heading = " ".join(section.headings[-1].split())
            short = len(heading) <= MAX_TERM_CHARACTERS and heading.count(" ") < MAX_TERM_TOKENS
            if short and not is_part_of_document(heading) and not PART.fullmatch(heading):
                yield section.start, heading


def emphasised_phrases(parsed: ParsedDocument, sections: Iterable[Section]) -> dict[str, str]:
    """Emphasised phrases, and headings of two words or more: words → surface, the first MAX_EMPHASISED."""
    terms: dict[str, str] = {}
    headings = (heading for _, heading in topic_headings(sections) if " " in heading)
    for phrase in (*headings, *parsed.emphasised):
        if len(terms) >= MAX_EMPHASISED:
            break
        surface = " ".join(phrase.split()).strip(" .,;:!?*_`\"'")
        if not 2 < len(surface) <= MAX_TERM_CHARACTERS or PART.fullmatch(surface):
            continue
        words = _TOKEN.findall(surface.lower())
        common = all(word in SENTENCE_STARTERS or not word[0].isalpha() for word in words)
        if len(words) <= MAX_TERM_TOKENS and not common:
            terms.setdefault(" ".join(words), surface)
    return terms


def repeated_phrases(tokens: Tokens) -> dict[str, str]:
    """Phrases of two to four words that occur three times or more, without stop words at their ends.

    The MAX_REPEATED with the highest (words - 1) x occurrences, ties by the alphabet; none in a text of fewer than
    MIN_TOKENS words.
    """
    words = tokens.words
    if len(words) < MIN_TOKENS:
        return {}
    counts = Counter(words)
    usable = [word if counts[word] >= MIN_REPETITIONS and (word[0].isalpha()) else "" for word in words]
    found: dict[str, int] = {}
    longer: dict[str, int] = {}
    for size, grams in reversed(_repeated_grams(usable)):
        for gram, count in grams:
            if _is_weak(gram[0]) or _is_weak(gram[-1]):
                continue
            phrase = " ".join(gram)
            if longer.get(phrase) == count:
                continue
            found[phrase] = (size - 1) * count
            for low in range(size - 1):
                for high in range(low + 2, size + 1):
                    inner = " ".join(gram[low:high])
                    longer[inner] = max(longer.get(inner, 0), count)
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:MAX_REPEATED]
    return {phrase: phrase for phrase, _ in best}


def _repeated_grams(words: list[str]) -> list[tuple[int, list[tuple[tuple[str, ...], int]]]]:
    """For each size from two words on, the n-grams that occur three times or more, with their counts.

    An n-gram is counted only where both its (n-1)-grams are frequent (Agrawal and Srikant 1994, section 2.1). Empty
    words end a run.
    """
    grams: list[tuple[str, ...]] = list(pairwise(words))
    starts: Sequence[int] = range(len(grams))
    by_size = []
    for size in range(2, MAX_WORDS + 1):
        repeated = {gram: count for gram, count in Counter(grams).items() if count >= MIN_REPETITIONS}
        if size == 2:
            repeated = {gram: count for gram, count in repeated.items() if "" not in gram}
        by_size.append((size, list(repeated.items())))
        frequent = [start for start, gram in zip(starts, grams, strict=True) if gram in repeated]
        starts = [start for start, following in pairwise(frequent) if following == start + 1]
        grams = [tuple(words[start : start + size + 1]) for start in starts]
    return by_size


def occurrences(text: str, tokens: Tokens, terms: dict[str, str]) -> Iterator[Name]:
    """All occurrences of the terms, longest match first, left to right; at most MAX_OCCURRENCES."""
    lengths: dict[str, list[int]] = {}
    for term in terms:
        first, *rest = term.split(" ")
        sizes = lengths.setdefault(first, [])
        if len(rest) + 1 not in sizes:
            sizes.append(len(rest) + 1)
    for sizes in lengths.values():
        sizes.sort(reverse=True)
    names = {term: name_of(surface) for term, surface in terms.items()}
    words, starts, ends = tokens
    reached = found = 0
    for at, word in enumerate(words):
        if word not in lengths or at < reached:
            continue
        for size in lengths[word]:
            term = " ".join(words[at : at + size])
            if names.get(term) and at + size <= len(words):  # at the end of the text a slice may be shorter
                start, end = starts[at], ends[at + size - 1]
                yield Name(start, end, names[term], text[start:end], "concept")
                reached = at + size
                found += 1
                break
        if found >= MAX_OCCURRENCES:
            return


def _is_weak(word: str) -> bool:
    return word in STOP_WORDS or len(word) < 3
