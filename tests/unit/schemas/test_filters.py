"""Filters as a caller writes them."""

import pytest

from schemas.errors import MalformedFilter
from schemas.filters import Condition, parse_condition


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("status=Final", Condition("status", "=", ("Final",))),
        (" author.name != Guido van Rossum ", Condition("author.name", "!=", ("Guido van Rossum",))),
        ("created>=2001-01-08", Condition("created", ">=", ("2001-01-08",))),
        ("size<10", Condition("size", "<", ("10",))),
        ("status=Final | Active", Condition("status", "=", ("Final", "Active"))),
        (r"path=a\|b|c", Condition("path", "=", ("a|b", "c"))),
        ("formula=a=b>c", Condition("formula", "=", ("a=b>c",))),
    ],
)
def test_a_filter_is_a_field_an_operator_and_values(text: str, condition: Condition) -> None:
    assert parse_condition(text) == condition


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("status", "is not a filter"),
        ("=Final", "is not a filter"),
        ("status=", "lacks a value"),
        ("status=a||b", "lacks a value"),
        ("created>=2001|2002", "several values"),
        ("", "is not a filter"),
    ],
)
def test_what_is_no_filter_is_refused_with_a_sentence(text: str, says: str) -> None:
    with pytest.raises(MalformedFilter, match=says):
        parse_condition(text)
