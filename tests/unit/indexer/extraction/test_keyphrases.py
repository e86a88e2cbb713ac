"""Phrases that are terms of a text, and where they stand."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from indexer.extraction.keyphrases import (
    MAX_WORDS,
    MIN_REPETITIONS,
    MIN_TOKENS,
    occurrences,
    repeated_phrases,
    tokens_of,
)
from indexer.extraction.lexicon import STOP_WORDS

WORDS = [*"abcdefgh", "river", "bed", "stone", "water", "the", "of"]


def test_the_longest_term_is_taken_and_at_the_end_of_a_text_a_shorter_one() -> None:
    text = "A river bed of gravel, and below it the river bed."
    terms = {phrase: phrase for phrase in ("river bed of gravel", "river bed")}
    found = [text[name.start : name.end] for name in occurrences(text, tokens_of(text), terms)]
    assert found == ["river bed of gravel", "river bed"]


def test_one_word_can_be_the_last_and_begin_a_longer_term() -> None:
    text = "The thalweg"
    found = list(occurrences(text, tokens_of(text), {"thalweg": "thalweg", "thalweg of a river": "thalweg of a river"}))
    assert [(name.start, name.end) for name in found] == [(4, 11)]


@given(st.randoms(use_true_random=False), st.integers(MIN_TOKENS - 5, 600))
def test_phrases_are_those_that_counting_all_runs_of_words_gives(random: Random, length: int) -> None:
    text = " ".join(random.choices(WORDS, k=length))
    tokens = tokens_of(text)
    assert repeated_phrases(tokens) == counted(tokens.words)


def counted(words: list[str]) -> dict[str, str]:
    """By the definition: all runs are counted; one that stands in a longer one as often is left out."""
    if len(words) < MIN_TOKENS:
        return {}
    runs = Counter(
        tuple(words[at : at + size]) for size in range(2, MAX_WORDS + 1) for at in range(len(words) - size + 1)
    )
    often = Counter(words)
    told = {
        run: count
        for run, count in runs.items()
        if count >= MIN_REPETITIONS
        and all(often[word] >= MIN_REPETITIONS for word in run)
        and not any(word in STOP_WORDS or len(word) < 3 for word in (run[0], run[-1]))
    }
    values: dict[str, int] = {}
    for run, count in told.items():
        longer = [
            other
            for other, others in told.items()
            if others == count and len(other) > len(run) and f" {' '.join(run)} " in f" {' '.join(other)} "
        ]
        if not longer:
            values[" ".join(run)] = (len(run) - 1) * count
    best = sorted(values, key=lambda phrase: (-values[phrase], phrase))[:30]
    return {phrase: phrase for phrase in best}
