"""Times in a question, absolute and from today."""

from datetime import UTC, datetime, timedelta

import pytest

from query_api.query.dates import asks_for_documents, asks_for_newest, relative_time, times_in

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day(moment: int) -> str | None:
    """None for what lies beyond any date."""
    return None if abs(moment) >= 2**53 else (EPOCH + timedelta(milliseconds=moment)).strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    ("question", "said", "first", "behind"),
    [
        ("created on 08-Jan-2001?", "on 08-Jan-2001", "2001-01-08", "2001-01-09"),
        ("what came in December 1958", "in December 1958", "1958-12-01", "1959-01-01"),
        ("notes of January 8, 2001, please", "of January 8, 2001", "2001-01-08", "2001-01-09"),
        ("PEPs in 2004", "in 2004", "2004-01-01", "2005-01-01"),
        ("2001-02-03 notes", "2001-02-03", "2001-02-03", "2001-02-04"),
        ("between 2001 and March 2003", "between 2001 and March 2003", "2001-01-01", "2003-04-01"),
        ("from 2001 to 2003", "from 2001 to 2003", "2001-01-01", "2004-01-01"),
        ("before 2005", "before 2005", None, "2005-01-01"),
        ("after May 2005", "after May 2005", "2005-06-01", None),
        ("since 2005", "since 2005", "2005-01-01", None),
        ("films of the 1990s", "the 1990s", "1990-01-01", "2000-01-01"),
    ],
)
def test_a_time_is_found_with_its_words(question: str, said: str, first: str | None, behind: str | None) -> None:
    (found,) = times_in(question)
    assert question[found.start : found.end] == said
    assert (day(found.span.start), day(found.span.end)) == (first, behind)


@pytest.mark.parametrize(
    ("question", "bounds"),
    [
        ("created on 08-Jan-2001?", [("=", "08-Jan-2001")]),
        ("between 2001 and March 2003", [(">=", "2001"), ("<=", "March 2003")]),
        ("before 2005", [("<", "2005")]),
        ("after May 2005", [(">", "May 2005")]),
        ("since 2005", [(">=", "2005")]),
        ("films of the 1990s", [(">=", "1990"), ("<=", "1999")]),
    ],
)
def test_a_time_is_told_as_a_filter_would_have_it(question: str, bounds: list[tuple[str, str]]) -> None:
    (found,) = times_in(question)
    assert list(found.bounds) == bounds


@pytest.mark.parametrize(
    "question", ["2014 S/S is an album", "port 2001/tcp", "PEP 2004", "version 3.10", "may 5", "between 2005 and 2001x"]
)
def test_what_only_looks_like_a_time_is_left_alone(question: str) -> None:
    assert times_in(question) == []


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
        ("changes since March", "since March", "2026-03-01", None),
        ("notes in December", "in December", "2025-12-01", "2026-01-01"),
        ("files from Friday", "from Friday", "2026-05-08", "2026-05-09"),
        ("files of the day before yesterday", "the day before yesterday", "2026-05-12", "2026-05-13"),
        ("alarms of the last 3 hours", "the last 3 hours", "2026-05-14T12:30", "2026-05-15"),
    ],
)
def test_a_time_from_today_is_found_with_its_words(
    question: str, said: str, since: str | None, until: str | None
) -> None:
    found = relative_time(question, NOW)
    assert found is not None
    assert question[found.start : found.end] == said
    assert (found.since, found.until) == tuple(
        None if moment is None else datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in (since, until)
    )


@pytest.mark.parametrize(
    "question",
    [
        "what changed last week",
        "What's new since Monday?",
        "incidents of the last 7 days",
        "notes from last month",
        "tickets closed in the past month",
        "anything since last Thursday",
        "last week's minutes",
        "yesterday’s decisions",
        "prices older than two years",
        "Who reported bugs in the past two weeks?",
        "files modified yesterday",
        "documents of yesterday",
        "changes since March",
        "papers published in March",
        "posts Ann uploaded this week",
        "could you show me the tickets from this week",
        "which tickets are from Monday",
        "has anything changed since yesterday?",
        "are there notes from last week?",
        "Which notes from last week mention the pump?",
        "what happened on Monday?",
    ],
)
def test_documents_are_asked_for_by_a_time(question: str) -> None:
    time = relative_time(question, NOW)
    assert time is not None
    assert asks_for_documents(question, time)


@pytest.mark.parametrize(
    "question",
    [
        "is the museum open on Sunday",
        "museum opening hours on Sunday",
        "Can I return an order placed in the last 30 days?",
        "What happens to logs older than one week?",
        "what becomes of notes older than a year",
        "Which logs older than a week get deleted?",
        "Which orders placed in the last 30 days can be returned?",
        "does the dashboard show events of the last 24 hours",
        "must invoices older than ten years be kept",
        "vacation days carried over from last year",
        "holidays this year",
        "what happened in May",
        "what happened at the fair on Sunday",
        "today's menu",
        "delete files older than a week",
        "report hours from last week",
        "is a new badge needed if it was changed last month",
        "staff who changed their badge in the last 90 days",
        "was the policy updated this year",
        "what is the new rule for orders placed last month",
        "what was sold last year",
        "shops open from Monday to Friday",
    ],
)
def test_a_time_may_be_what_a_question_is_about(question: str) -> None:
    time = relative_time(question, NOW)
    assert time is None or not asks_for_documents(question, time)


def test_capitalised_day_within_a_question_is_a_name() -> None:
    assert relative_time("Who wrote Yesterday?", NOW) is None


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
        "letters from June",
        "the Friday meeting",
        "Black Friday",
        "changes in March 2020",
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
    for before in ("what new things " * 600, "please show me the " * 500, "files files " * 800, "all the " * 1_200):
        asked = f"{before} last week"
        time = relative_time(asked, NOW)
        assert time is not None
        asks_for_documents(asked, time)
    for question in ("the last " * 1_200, "since " * 2_000, "in the past a couple of " * 500, "1 day " * 2_000):
        assert relative_time(question[:10_000], NOW) is None
