"""What a question says, looked up before anything is searched: the time it names, its names, its fields.

Times and fields only where the structured channel is asked, which is the one that reads what a question says of
documents' fields. A time goes by a document's own date, else by when its record arrived.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

from query_api.index.text.fields import Span
from query_api.index.text.phrases import words_of
from query_api.query.dates import EARLIEST, LATEST, RelativeTime, asks_for_newest, relative_time
from query_api.query.entity_linking import LinkedNames, names_in, shown_names
from query_api.query.field_constraints import FieldCues, Recognised, shown_fields
from query_api.retrieval.fusion import DEPTH, RankedPassage
from query_api.retrieval.retrievers.text import recognised_fields
from query_api.retrieval.stages import SearchContext, within
from schemas.hits import FieldInQuestion, NamedInQuestion, PeriodInQuestion

NEWEST_BONUS = 0.5
A_DAY_MS = 86_400_000


class Analysis(NamedTuple):
    """What a question names in the graph, and what it asks of documents' fields; None for what was not looked up or
    took too long."""

    names: LinkedNames | None
    fields: Recognised | None

    def shown(self, context: SearchContext) -> tuple[tuple[NamedInQuestion, ...], tuple[FieldInQuestion, ...]]:
        """Names and fields for a person to read."""
        names = () if self.names is None else shown_names(self.names, context.snapshot.graph)
        return names, () if self.fields is None else shown_fields(self.fields)


async def analyse(context: SearchContext) -> Analysis:
    """Look up the names and fields of a question, each within the budget of the channel that goes by them."""
    request, snapshot, budgets = context.request, context.snapshot, context.settings.budgets
    names: LinkedNames | None = None
    fields: Recognised | None = None
    if "graph" in context.channels:
        looking = context.run(lambda: names_in(context.question, snapshot.graph, request.collection, request.names))
        names = (await within("names", budgets.graph_seconds, looking)).value
    if "structured" in context.channels:
        recognising = context.run(lambda: recognised_fields(snapshot.text, request.q, context.scope))
        fields = (await within("fields", budgets.structured_seconds, recognising)).value
    return Analysis(names, fields)


async def within_asked_time(context: SearchContext) -> tuple[SearchContext, PeriodInQuestion | None]:
    """The context of the documents that are from the time that the question names, and what is told of that. Where
    none is, all are searched."""
    if "structured" not in context.channels:
        return context, None
    question = context.request.q
    context = replace(context, newest_first=asks_for_newest(question))
    time = relative_time(question, context.now)
    if time is None:
        return context, None
    fields, words, scope = context.snapshot.text.fields, words_of(question), context.scope
    inside = [at for at, word in enumerate(words) if time.start <= word.start < time.end]
    speaking = FieldCues(question, words)

    def spoken_of(field: str) -> bool:
        return speaking.cued(field, inside[0], inside[-1] + 1)

    narrowed, looked_at = await context.run(lambda: fields.within(_span(time), scope, spoken_of))
    period = PeriodInQuestion(
        words=question[time.start : time.end],
        since=None if time.since is None else time.since.isoformat(),
        before=None if time.until is None else time.until.isoformat(),
        fields=looked_at,
        documents=len(narrowed.documents or ()),
    )
    return (replace(context, scope=narrowed) if narrowed.documents else context), period


def newest_first(places: Sequence[RankedPassage], context: SearchContext) -> list[RankedPassage]:
    """The first places in the order of score x (1 + .5 x the share of their dates that is older), by whole days.

    The share, and not the age, so that the preference is the same among documents of a week and of a century, and none
    among those of one day. Of the first candidates alone, so that a longer order begins with a shorter one.
    """
    fields, now = context.snapshot.text.fields, _milliseconds(context.now)
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
