"""What a search found, by documents' fields: counted (`facets`), and ordered (`sort`)."""

import unicodedata
from collections.abc import Sequence

from query_api.index.text.field_index import date_span, number_in
from query_api.index.text.field_values import facet_of
from query_api.index.text.filter_evaluation import DocumentIndex
from query_api.index.text.text_segments import Candidate, Scope
from query_api.retrieval.fusion import DEPTH, RankedPassage
from query_api.retrieval.ranking import QuestionResults
from query_api.retrieval.search_context import Diagnostics, SearchContext, run_with_timeout
from schemas.fields import Facet
from schemas.ids import DocumentKey

MOST_SORTED = 1_000
ALL = 2**31


async def count_facets(results: Sequence[QuestionResults], diagnostics: Diagnostics) -> list[Facet]:
    """Of the fields that are asked for, over what was found for a question and its parts, whatever the page; none where
    that takes too long."""
    context = results[0].context
    counting = context.run(lambda: _facets(context, results))
    outcome = await run_with_timeout("facets", context.settings.budgets.structured_seconds, counting)
    diagnostics.stage(outcome, 0)
    return outcome.value or []


def _facets(context: SearchContext, results: Sequence[QuestionResults]) -> list[Facet]:
    found = frozenset[DocumentKey]().union(*map(_documents_found, results))
    scope = Scope(context.request.collection, found)
    return [facet_of(context.snapshot.text.fields, field, scope) for field in dict.fromkeys(context.request.facets)]


def _documents_found(results: QuestionResults) -> set[DocumentKey]:
    """Those that hold a word of the question, and the first candidates of the other channels."""
    context, text, graph, view = results.context, results.text, results.graph, results.context.snapshot.graph
    by_words: Sequence[Candidate] = context.search_words(ALL) if "keyword" in context.channels else ()
    lists = (by_words, (text.vector or ())[:DEPTH], text.structured.candidates, text.communities.candidates)
    passages = [name for name in graph.scores if context.holding is None or name in context.holding]
    followed = {view.document_key(view.document_of_passage(graph.numbers[name])) for name in passages}
    return followed.union(each.key for found in lists for each in context.kept(found))


async def sorted_by_field(context: SearchContext, order: list[RankedPassage]) -> list[RankedPassage]:
    """As `sort_by_field`, where that is asked for."""
    sort, documents = context.request.sort, context.snapshot.text.fields
    return order if sort is None else await context.run(lambda: sort_by_field(order, sort, documents))


def sort_by_field(order: Sequence[RankedPassage], sort: str, documents: DocumentIndex) -> list[RankedPassage]:
    """The first MOST_SORTED of an order by a field, downwards behind a `-`, the others behind them as they were.

    Of several values the lowest counts, downwards the highest. Dates and numbers come before texts. What has no value
    is last, whichever the direction; equals stay in their order.
    """
    field, is_downward = sort.removeprefix("-"), sort.startswith("-")
    first = order[:MOST_SORTED]
    values = {key: documents.values(field, key) for key in {passage.key for passage in first}}
    has_dates = any(date_span(value) and number_in(value) is None for of in values.values() for value in of)

    def place(value: str) -> tuple[bool, float, str]:
        span = date_span(value) if has_dates else None
        number = number_in(value) if span is None else span.start
        if number is None or (has_dates and span is None):
            return True, 0.0, unicodedata.normalize("NFKD", value)
        return False, number, ""

    best = max if is_downward else min
    places = {key: best(map(place, of)) for key, of in values.items() if of}
    having = [each for each in first if each.key in places]
    having.sort(key=lambda each: places[each.key], reverse=is_downward)  # equals stay as they were, both ways
    return [*having, *(each for each in first if each.key not in places), *order[MOST_SORTED:]]
