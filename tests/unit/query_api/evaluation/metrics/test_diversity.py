"""How much of a collection an answer shows, worked by hand."""

import pytest

from query_api.evaluation.metrics.diversity import Diversity, categories_of, diversity, years_of

METADATA = {
    "a": {"topic": ["birds", "rivers"], "created": "14-May-2001"},
    "b": {"topic": "birds", "created": "2001-06-01"},
    "c": {"topic": "stars", "created": "2004"},
    "d": {},
}


def test_distinct_ones_are_counted_against_the_most_there_could_be() -> None:
    """Two hits of one document and one of another: 2 of 3 documents, 2 of 3 categories, 1 of 2 years."""
    assert diversity([["a", "a", "b"]], METADATA) == Diversity(sources=0.666667, categories=0.666667, years=0.5)


def test_answers_without_a_hit_count_for_nothing() -> None:
    assert diversity([["a", "c"], []], METADATA) == diversity([["a", "c"]], METADATA)
    assert diversity([[]], METADATA) == Diversity(sources=None, categories=None, years=None)


def test_what_no_metadata_tells_is_null_and_not_nothing() -> None:
    assert diversity([["d"]], {"d": {}}) == Diversity(sources=1, categories=None, years=None)


@pytest.mark.parametrize(
    ("metadata", "years"),
    [({"created": 1958}, {"1958"}), ({"date": "x", "year": 2004}, {"2004"}), ({"created": "12345"}, set())],
)
def test_a_year_is_four_digits_of_the_first_field_that_has_them(metadata: dict[str, object], years: set[str]) -> None:
    assert years_of(metadata) == years


def test_categories_are_those_of_the_first_field_that_names_any() -> None:
    assert categories_of({"tags": ["x", ""], "type": "Process"}) == {"x"}
    assert categories_of({"type": 3}) == frozenset()
