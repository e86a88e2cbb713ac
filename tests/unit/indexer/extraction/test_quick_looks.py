"""What is looked for only where it can be is found as if it were looked for everywhere."""

import re
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from indexer.extraction import names
from indexer.extraction.keyphrases import MAX_WORDS, MIN_REPETITIONS, MIN_TOKENS, repeated_phrases, tokens_of
from indexer.extraction.lexicon import STOP_WORDS

EVERY_DATE = names._DATE
EVERY_IDENTIFIER = re.compile(
    r"(?<![\w./@:\\-])(?:[a-z]+[A-Z]\w*|_{0,2}[a-z]\w+(?:\.[a-z_]\w+)+|_{0,2}[a-z]\w*_\w+)(?![\w@/]|\.\w)"
)
PARTS_OF_DATES = st.sampled_from(
    ["1", "12", "30th", "2004", "20045", "May", "September", "Sept.", "January", " ", " ", ", ", "\n", ".", "x"]
)
WORDS = [*"abcdefgh", "river", "bed", "stone", "water", "the", "of"]


@given(st.lists(PARTS_OF_DATES, max_size=24), st.integers(0, 3), st.integers(0, 3))
def test_every_date_is_found_by_its_year(parts: list[str], before: int, behind: int) -> None:
    text = "".join(parts)
    end = max(before, len(text) - behind)
    found = [(name.start, name.end) for name in names.dates_in(text, before, end)]
    assert found == [match.span() for match in EVERY_DATE.finditer(text, before, end)]


@given(st.text("abXY19_.@/:- \n", max_size=40))
def test_identifiers_are_those_that_a_word_read_forwards_and_backwards_gives(text: str) -> None:
    found = [(name.start, name.end) for name in names.code_in(text, 0, len(text))]
    expected = [match for match in EVERY_IDENTIFIER.finditer(text) if len(names.name_of(match.group())) > 2]
    assert found == [match.span() for match in expected]


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
