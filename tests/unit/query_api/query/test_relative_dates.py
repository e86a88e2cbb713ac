"""Times that questions tell from today."""

from datetime import UTC, datetime

import pytest

from query_api.query.relative_dates import asks_for_newest, relative_time

NOW = datetime(2026, 5, 14, 15, 30, tzinfo=UTC)  # a Thursday


@pytest.mark.parametrize(
    ("question", "said", "since", "until"),
    [
        ("what changed today", "today", "2026-05-14", "2026-05-15"),
        ("What did we decide yesterday about prices?", "yesterday", "2026-05-13", "2026-05-14"),
        ("incidents of the last 7 days", "the last 7 days", "2026-05-07", "2026-05-15"),
        ("who reported bugs in the past two weeks?", "in the past two weeks", "2026-04-30", "2026-05-15"),
        ("what was written last week", "last week", "2026-05-04", "2026-05-15"),
        ("changes in the last week", "in the last week", "2026-05-07", "2026-05-15"),
        ("notes from last month", "from last month", "2026-04-01", "2026-05-01"),
        ("tickets of the past month", "the past month", "2026-04-14", "2026-05-15"),
        ("releases this year", "this year", "2026-01-01", "2027-01-01"),
        ("what was sold last year", "last year", "2025-01-01", "2026-01-01"),
        ("minutes of this quarter", "this quarter", "2026-04-01", "2026-07-01"),
        ("letters from three days ago", "from three days ago", "2026-05-11", "2026-05-12"),
        ("a couple of months ago, what failed?", "a couple of months ago", "2026-03-01", "2026-04-01"),
        ("everything since yesterday", "since yesterday", "2026-05-13", None),
        ("documents older than 2 years", "older than 2 years", None, "2024-05-14T15:30"),
        ("notes before this month", "before this month", None, "2026-05-01"),
        ("what happened on Monday?", "on Monday", "2026-05-11", "2026-05-12"),
        ("anything since last Thursday", "since last Thursday", "2026-05-07", None),
        ("last week's minutes", "last week", "2026-05-04", "2026-05-15"),
        ("alarms of the last 3 hours", "the last 3 hours", "2026-05-14T12:30", "2026-05-15"),
    ],
)
def test_a_time_is_found_with_its_words(question: str, said: str, since: str | None, until: str | None) -> None:
    found = relative_time(question, NOW)
    assert found is not None
    assert question[found.start : found.end] == said
    assert (found.since, found.until) == tuple(
        None if moment is None else datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in (since, until)
    )


@pytest.mark.parametrize(
    "question",
    [
        "python get last week",
        "how do I get today's date",
        "check if a date is today",
        "first day of last month in python",
        "What is the town known today as Ek called?",
        "Who lives in Lisbon today?",
        "the last year of the war",
        "a film of the last century",
        "what takes 3 days",
        "Monday is the name of a song",
        "Yesterday's name",
        "the yesterday-today-and-tomorrow plant",
    ],
)
def test_what_restricts_nothing_is_left_alone(question: str) -> None:
    assert relative_time(question, NOW) is None


@pytest.mark.parametrize(
    ("question", "newest"),
    [
        ("latest release notes", True),
        ("recent changes to pricing", True),
        ("what's new in the cluster?", True),
        ("What was most recently decided?", True),
        ("the newest of all", True),
        ("a recentred lens", False),
        ("Which film was made more recently, Alpha or Beta?", False),
        ("the new cluster", False),
    ],
)
def test_what_asks_for_the_newest(question: str, newest: bool) -> None:
    assert asks_for_newest(question) is newest


def test_no_question_takes_long_to_read() -> None:
    for question in ("the last " * 1_200, "since " * 2_000, "in the past a couple of " * 500, "1 day " * 2_000):
        assert relative_time(question[:10_000], NOW) is None
