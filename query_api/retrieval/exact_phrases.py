"""What a query quotes or excludes, as what is searched: its scope, and which passages may be hits."""

from collections.abc import Sequence
from dataclasses import replace

from query_api.query.phrases import passages_holding, read_query
from query_api.retrieval.search_context import SearchContext, SearchFailed, run_with_timeout

AS_TEXT = (
    "Quotation marks and exclusions were read as text: in a question the former may mark a title, and an exclusion "
    "needs something to search for. A search of a few words, or mode=keyword, requires what is quoted."
)


async def apply_phrases(context: SearchContext) -> tuple[SearchContext, tuple[str, ...]]:
    """The context without what is excluded, with what is quoted required, of questions in mode `keyword` alone; and
    what was done, in sentences. Raises SearchFailed."""
    query = read_query(context.request.q)
    phrases = query.phrases if context.request.mode == "keyword" or not query.is_question else ()
    if not query.text or not (phrases or query.excluded):
        return context, (AS_TEXT,) if query.phrases or query.excluded else ()
    context = replace(context, request=context.request.model_copy(update={"q": query.text}))
    looking = context.run(lambda: _narrowed(context, phrases, query.excluded))
    outcome = await run_with_timeout("phrases", context.settings.budgets.keyword_seconds, looking)
    if outcome.value is None:
        raise SearchFailed(f"What is quoted or excluded was not looked up: {outcome.error}")
    return outcome.value


def _narrowed(
    context: SearchContext, phrases: Sequence[str], excluded: Sequence[str]
) -> tuple[SearchContext, tuple[str, ...]]:
    """Blocks."""
    text, scope = context.snapshot.text, context.scope
    done, passages = [], set[str]()
    for words in phrases:
        found = passages_holding(text, words, context.scope)
        done.append(f"Only what holds “{words[:80]}” was searched; documents: {len(set(found.values())):,}.")
        scope = scope.within(found.values())
        passages.update(found)
    for words in excluded:
        left_out = set(passages_holding(text, words, context.scope, any_form=True).values())
        done.append(f"What holds “{words[:80]}” was left out; documents: {len(left_out):,}.")
        scope = scope.within(set(text.fields.keys(text.fields.live(scope).nonzero()[0])) - left_out)
    return replace(context, scope=scope, holding=frozenset(passages) if phrases else None), tuple(done)
