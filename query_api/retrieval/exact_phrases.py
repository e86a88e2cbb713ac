"""What a query quotes or excludes, as what is searched: its scope, and which passages may be hits."""

from collections.abc import Sequence
from dataclasses import replace

from query_api.query.phrases import Phrase, passages_holding, read_query
from query_api.retrieval.search_context import SearchContext, SearchFailed, run_with_timeout
from schemas.hits import PhraseInQuestion


async def apply_phrases(context: SearchContext) -> tuple[SearchContext, tuple[PhraseInQuestion, ...]]:
    """The context without what is excluded, with what is quoted required, of questions in mode `keyword` alone; and
    what was done. Raises SearchFailed."""
    query = read_query(context.request.q)
    phrases = query.phrases if context.request.mode == "keyword" or not query.is_question else ()
    searched = query.excluded if not query.text else query.phrases if not phrases else ()
    told = tuple(PhraseInQuestion(words=each, use="searched", documents=None) for each in searched)
    if not query.text or not (phrases or query.excluded):
        return context, told
    context = replace(context, request=context.request.model_copy(update={"q": query.text}))
    looking = context.run(lambda: _narrowed(context, phrases, query.excluded))
    outcome = await run_with_timeout("phrases", context.settings.budgets.keyword_seconds, looking)
    if outcome.value is None:
        raise SearchFailed(f"What is quoted or excluded was not looked up: {outcome.error}")
    return outcome.value[0], (*outcome.value[1], *told)


def _narrowed(
    context: SearchContext, phrases: Sequence[str], excluded: Sequence[str]
) -> tuple[SearchContext, list[PhraseInQuestion]]:
    """Blocks."""
    text, scope = context.snapshot.text, context.scope
    told: list[PhraseInQuestion] = []
    passages: set[str] = set()
    for words in phrases:
        found = passages_holding(text, Phrase(words), context.scope)
        told.append(PhraseInQuestion(words=words, use="required", documents=len(set(found.values()))))
        scope = scope.within(found.values())
        passages.update(found)
    for words in excluded:
        left_out = set(passages_holding(text, Phrase(words), context.scope).values())
        told.append(PhraseInQuestion(words=words, use="excluded", documents=len(left_out)))
        scope = scope.within(set(text.fields.keys(text.fields.live(scope).nonzero()[0])) - left_out)
    return replace(context, scope=scope, holding=frozenset(passages) if phrases else None), told
