"""When a question wants its documents to be from: a filter for `last week`, a preference for `latest`.

Both go by a document's own date, else by when its record arrived, and only where the structured channel is asked, which
is the one that reads what a question says of documents' fields.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from query_api.index.text.dates import Span
from query_api.index.text.phrases import words_of
from query_api.query.dates import EARLIEST, LATEST
from query_api.query.field_cues import Speaking
from query_api.query.relative_dates import RelativeTime, asks_for_newest, relative_time
from query_api.retrieval.fusion import DEPTH, Place
from query_api.retrieval.stages import Reading
from schemas.hits import PeriodInQuestion

NEWEST_BONUS = 0.5
A_DAY_MS = 86_400_000


async def within_asked_time(reading: Reading) -> tuple[Reading, PeriodInQuestion | None]:
    """The reading of the documents that are from the time that the question names, and what is told of that. Where
    none is, all are read."""
    question = reading.request.q
    reading = replace(reading, newest_first=asks_for_newest(question))
    time = relative_time(question, reading.now)
    if time is None:
        return reading, None
    fields, words, scope = reading.snapshot.text.fields, words_of(question), reading.scope
    inside = [at for at, word in enumerate(words) if time.start <= word.start < time.end]
    speaking = Speaking(question, words)

    def spoken_of(field: str) -> bool:
        return speaking.cued(field, inside[0], inside[-1] + 1)

    within, looked_at = await reading.run(lambda: fields.within(_span(time), scope, spoken_of))
    period = PeriodInQuestion(
        words=question[time.start : time.end],
        since=None if time.since is None else time.since.isoformat(),
        before=None if time.until is None else time.until.isoformat(),
        fields=looked_at,
        documents=len(within.documents or ()),
    )
    return (replace(reading, scope=within) if within.documents else reading), period


def newest_first(places: Sequence[Place], reading: Reading) -> list[Place]:
    """The first places in the order of score x (1 + .5 x the share of their dates that is older), by whole days.

    The share, and not the age, so that the preference is the same among documents of a week and of a century, and none
    among those of one day. Of the first candidates alone, so that a longer order begins with a shorter one.
    """
    fields, now = reading.snapshot.text.fields, _milliseconds(reading.now)
    pool = places[:DEPTH]
    days = [fields.date_of(place.key, now) // A_DAY_MS for place in pool]
    older = dict(zip(sorted(set(days)), count()))
    most = max(1, len(older) - 1)
    raised = [
        place._replace(score=place.score * (1 + NEWEST_BONUS * older[day] / most))
        for place, day in zip(pool, days, strict=True)
    ]
    return [*sorted(raised, key=lambda place: -place.score), *places[DEPTH:]]


def _span(time: RelativeTime) -> Span:
    return Span(
        EARLIEST if time.since is None else _milliseconds(time.since),
        LATEST if time.until is None else _milliseconds(time.until),
    )


def _milliseconds(moment: datetime) -> int:
    return int(moment.astimezone(UTC).timestamp() * 1000)
