"""`Last week` is a filter, `latest` a preference, by documents' own dates, else by when they arrived."""

from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from query_api.retrieval.search_context import SearchSettings
from schemas.frames import Meta
from schemas.hits import PeriodInQuestion
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import Answer, ask

NOW = datetime(2026, 5, 14, 15, 30, tzinfo=UTC)
AT_NOW = SearchSettings(clock=lambda: NOW)


def note(name: str, days_ago: int | None, text: str = "Prices were changed.", **metadata: Any) -> Page:
    dated = {} if days_ago is None else {"date": f"{NOW - timedelta(days=days_ago):%Y-%m-%d}"}
    return Page(name, f"Note {name}", [[text]], collection="notes", metadata={**dated, **metadata})


NOTES = [note("today", 0), note("week", 4), note("month", 25), note("year", 300), note("old", 2_000)]


def told(answer: Answer) -> PeriodInQuestion | None:
    meta = answer.parts[0]
    assert isinstance(meta, Meta)
    assert meta.understanding is not None
    return meta.understanding.period


def found(answer: Answer) -> list[str]:
    return [hit.document_id for hit in answer.hits]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What changed today about prices?", {"today"}),
        ("which prices were changed in the last 7 days", {"today", "week"}),
        ("which prices were changed in the last 60 days", {"today", "week", "month"}),
        ("which prices were changed this year", {"today", "week", "month"}),
        ("which prices were changed before last year", {"old"}),
        ("prices", {"today", "week", "month", "year", "old"}),
    ],
)
async def test_a_time_told_from_today_is_a_filter(executor: Executor, question: str, expected: set[str]) -> None:
    assert set(found(await ask(world(NOTES), executor, question, AT_NOW))) == expected


async def test_the_filter_is_told_with_what_it_looked_at(executor: Executor) -> None:
    period = told(await ask(world(NOTES), executor, "Which prices changed this year?", AT_NOW))
    assert period is not None
    assert period.model_dump() == {
        "words": "this year",
        "since": "2026-01-01T00:00:00+00:00",
        "before": "2027-01-01T00:00:00+00:00",
        "fields": ("date",),
        "documents": 3,
        "filters": True,
    }


async def test_time_that_a_question_is_about_leaves_none_out(executor: Executor) -> None:
    hours = note("hours", 700, "The museum is open on Monday from ten to four.")
    party = note("party", 3, "The party was moved to the garden.")  # on a Monday
    answer = await ask(world([hours, party, *NOTES]), executor, "is the museum open on Monday", AT_NOW)
    assert found(answer)[0] == "hours"
    period = told(answer)
    assert period is not None
    assert (period.words, period.documents, period.filters) == ("on Monday", 1, False)


async def test_documents_of_a_time_that_is_named_are_raised(executor: Executor) -> None:
    alike = [note(name, days, f"Holidays of the office {name}.") for name, days in (("a", 300), ("b", 30))]
    assert found(await ask(world(alike), executor, "holidays of the office this year", AT_NOW)) == ["b", "a"]
    assert found(await ask(world(alike), executor, "holidays of the office", AT_NOW)) == ["a", "b"]


async def test_a_document_without_a_date_is_from_when_it_arrived(executor: Executor) -> None:
    notes = [*NOTES, note("undated", None)]  # which arrived in 1970
    assert "undated" in found(await ask(world(notes), executor, "prices older than 40 years", AT_NOW))
    assert "undated" not in found(await ask(world(notes), executor, "prices since last month", AT_NOW))


async def test_the_field_that_is_spoken_of_counts(executor: Executor) -> None:
    notes = [
        note("new", None, created="2026-05-12", reviewed="2026-05-13"),
        note("reviewed", None, created="2020-01-01", reviewed="2026-05-12"),
    ]
    made = world(notes)
    assert found(await ask(made, executor, "prices created this week", AT_NOW)) == ["new"]
    assert set(found(await ask(made, executor, "prices this week", AT_NOW))) == {"new", "reviewed"}


async def test_where_no_document_is_of_that_time_all_are_searched_and_it_is_told(executor: Executor) -> None:
    answer = await ask(world(NOTES[2:]), executor, "Which prices were changed yesterday?", AT_NOW)
    assert len(found(answer)) == 3
    period = told(answer)
    assert period is not None
    assert period.documents == 0


@pytest.mark.parametrize("request_", [{"mode": "vector"}, {"channels": ["vector", "keyword"]}])
async def test_a_channel_asked_without_the_structured_one_reads_no_time(
    executor: Executor, request_: dict[str, Any]
) -> None:
    answer = await ask(world(NOTES), executor, "prices this year", AT_NOW, **request_)
    assert len(found(answer)) == 5
    assert told(answer) is None


async def test_who_asks_for_the_latest_finds_it_before_what_fits_as_well(executor: Executor) -> None:
    made = world([*NOTES, note("else", 0, "Something else altogether.")])
    asked = await ask(made, executor, "latest prices that were changed", AT_NOW, explain=True)
    assert found(asked)[:5] == ["today", "week", "month", "year", "old"]
    assert [hit.score for hit in asked.hits] == sorted((hit.score for hit in asked.hits), reverse=True)
    recency = [hit.factors.recency for hit in asked.hits[:5] if hit.factors is not None]
    assert recency == [1.0, 0.9924, 0.9536, 0.5657, 0.0224]


async def test_pages_of_the_latest_are_those_of_one_long_page(executor: Executor) -> None:
    made = world([note(f"n{at:03}", at, f"Prices {at} were changed.") for at in range(90)])
    whole = found(await ask(made, executor, "latest prices", AT_NOW, k=90))
    parts = [found(await ask(made, executor, "latest prices", AT_NOW, k=30, offset=at)) for at in (0, 30, 60)]
    assert [*parts[0], *parts[1], *parts[2]] == whole
    assert len(set(whole)) == 90
