"""The steps of a search: how each ends, and what is told of it."""

import asyncio

import pytest

from indexer.errors import EncoderUnavailable, TransientStoreError
from query_api.retrieval.search_context import (
    MAX_REASON_CHARACTERS,
    Diagnostics,
    Outcome,
    SearchBudgets,
    run_with_timeout,
)


async def gives(value: str | Exception) -> str:
    if isinstance(value, Exception):
        raise value
    return value


async def test_a_step_ends_with_a_value_or_with_a_reason() -> None:
    assert (await run_with_timeout("texts", 5.0, gives("found")))[2:] == ("found", None)
    for away in (TransientStoreError("The disk is gone"), EncoderUnavailable("The disk is gone")):
        assert (await run_with_timeout("texts", 5.0, gives(away)))[2:] == (None, "The disk is gone")
    assert (await run_with_timeout("texts", 0.0, asyncio.Event().wait()))[2:] == (
        None,
        "no answer within 0 s",
    )


async def test_a_reason_is_no_longer_than_anyone_reads() -> None:
    told = (await run_with_timeout("texts", 5.0, gives(TransientStoreError("x" * 5_000)))).error
    assert told == "x" * MAX_REASON_CHARACTERS


async def test_a_fault_of_the_program_is_raised() -> None:
    with pytest.raises(KeyError):
        await run_with_timeout("texts", 5.0, gives(KeyError("wrong")))


def test_the_whole_budget_is_that_of_the_longest_way() -> None:
    """Embedding and the vectors, 2 + 2, beside words and fields, 2 + 1; comparing and the graph, 2 + 2; texts, 5."""
    assert SearchBudgets().total_seconds == 13.0
    assert SearchBudgets(keyword_seconds=6.0).total_seconds == 16.0


def test_what_is_told_of_steps() -> None:
    diagnostics = Diagnostics()
    assert diagnostics.stage(Outcome("embed", 0.25, None, "no answer"), 0).error == "no answer"
    diagnostics.blame_vector_for_embedding()
    diagnostics.stage(Outcome("keyword", 0.5, ["a"], None), 1)
    diagnostics.add("texts", 0.25)
    diagnostics.add("texts", 0.5)
    assert diagnostics.timings == {"embed": 0.25, "keyword": 0.5, "texts": 0.75}
    assert diagnostics.failed == {"vector": "The question was not embedded: no answer"}
