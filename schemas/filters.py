"""Filters, groups and page sizes of a search; without pydantic, since commands import them at every start."""

import re
from typing import Literal, NamedTuple, cast

from schemas.errors import MalformedFilter

Group = Literal["passage", "chunk", "document"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]

MAX_HITS = 1_000
MAX_FILTERS = 32
MAX_FILTER_CHARACTERS = 2_000
SYNTAX = "a filter is `field=value`, `field!=value` or one with <, <=, >, >=; `field=a|b` takes one of several values"

_CONDITION = re.compile(r"\s*([^=<>!|]*?)\s*(!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_BAR = re.compile(r"(?<!\\)\|")


class Condition(NamedTuple):
    """One filter. Several `values` mean any of them; only `=` and `!=` have more than one."""

    field: str
    operator: Operator
    values: tuple[str, ...]


def parse_condition(text: str) -> Condition:
    r"""Read one filter. Blanks around field and values do not count; `\|` is a bar that belongs to a value.

    Raises MalformedFilter, with a sentence.
    """
    match = _CONDITION.fullmatch(text)
    if match is None or not match[1]:
        raise MalformedFilter(f"{text[:60]!r} is not a filter: {SYNTAX}")
    operator = cast("Operator", match[2])
    values = tuple(value.replace("\\|", "|").strip() for value in _BAR.split(match[3]))
    if not all(values):
        raise MalformedFilter(f"{text[:60]!r} lacks a value: {SYNTAX}")
    if len(values) > 1 and operator not in ("=", "!="):
        raise MalformedFilter(f"{text[:60]!r} compares with several values; `{operator}` takes one")
    return Condition(match[1], operator, values)


def format_condition(field: str, value: str) -> str | None:
    r"""The filter for this one value, as `parse_condition` reads it. None where there is none: a blank value, a field
    whose name holds an operator, or a text of more than MAX_FILTER_CHARACTERS."""
    escaped = value.replace("|", r"\|")
    text = f"{field}={escaped}"
    if len(text) > MAX_FILTER_CHARACTERS:
        return None
    try:
        return text if parse_condition(text) == Condition(field, "=", (value.strip(),)) else None
    except MalformedFilter:
        return None
