"""What is written is supported by sentences that have its names, its numbers and most of its words; else it is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.answers.model.support import MOST_SPANS, sources_of, supporting
from tests.unit.query_api.answers.found import HITS, hit

PIER = hit(
    1,
    "Old Pier",
    "The pier was built in 1901 by two brothers. It was not painted. It burned in 1902. "
    "More at https://pier.example/a?b=c now.",
)


def support(written: str, *hits: object) -> list[str]:
    sources = sources_of([*(hits or HITS)])  # type: ignore[list-item]
    return [sentence.text for sentence in supporting(written, [each for some in sources for each in some])]


@pytest.mark.parametrize(
    ("written", "spans"),
    [
        ("Jane Doe was born in Lisbon, Portugal.", ["She was born in Lisbon, Portugal."]),
        ("Alpha Film was directed by Jane Doe.", ["It was directed by Jane Doe, who also wrote it."]),
        (
            "Jane Doe, who directed Alpha Film, was born in Lisbon.",
            ["It was directed by Jane Doe, who also wrote it.", "She was born in Lisbon, Portugal."],
        ),
        ("Jane Doe came from Lisbon, Portugal, where she was born.", ["She was born in Lisbon, Portugal."]),
        ("Jane Doe was born in Porto, Portugal.", []),
        ("Porto is where Jane Doe was born, in Portugal.", []),
        ("Alpha Film is a film of 1951.", []),
        ("Alpha Film and Beta Film are films of 1950 and 1951.", [HITS[0].text[:29], HITS[2].text[:41]]),
        ("It was wonderful, brilliant and touching.", []),
        ("Yes.", []),
        ("", []),
    ],
)
def test_sentences_that_support(written: str, spans: list[str]) -> None:
    assert support(written) == spans


@pytest.mark.parametrize(
    ("written", "is_supported"),
    [
        ("The pier was built in 1901.", True),
        ("The pier was built in 1902.", False),
        ("The pier burned in 1902.", True),
        ("The pier was built by two brothers.", True),
        ("The pier was built by three brothers in the year 1901.", False),
        ("The pier was not built in 1901 by two brothers.", False),
        ("The pier was painted.", False),
        ("The pier was not painted.", True),
        ("The pier wasn't painted.", True),
        ("More at https://pier.example/a?b=c now.", True),
        ("More at https://pier.example/a?b=c&the+pier+was+built now.", False),
        ("More at [pier](https://pier.example/a?b=c) now.", False),
        ("The pier was built ![1901](1901) by two brothers.", False),
        ("The pier was <img src=built> in 1901.", False),
        ("The pier was built in 1901, see www.pier.built.", False),
    ],
)
def test_names_numbers_denials_and_addresses_are_those_of_the_source(written: str, is_supported: bool) -> None:
    assert bool(support(written, PIER)) is is_supported


def test_a_title_and_headings_name_what_a_sentence_is_about() -> None:
    about = hit(1, "Tide Mill", "It was built in 1840.", section=["Tide Mill", "History of Eling"])
    assert support("The Tide Mill at Eling was built in 1840.", about) == ["It was built in 1840."]
    assert support("Tide Mill.", about) == []


def test_a_sentence_that_two_hits_have_is_found_in_either() -> None:
    twins = [hit(1, "A", "The sluice opens at noon."), hit(2, "B", "The sluice opens at noon.")]
    assert [len(each) for each in sources_of(twins)] == [1, 1]
    [sentence] = supporting("The sluice opens at noon.", sources_of(twins)[1])
    assert sentence.hit == 1


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_is_supported_by_few_sentences_or_none(written: str, text: str) -> None:
    assert len(support(written, hit(1, "T", text))) <= MOST_SPANS
