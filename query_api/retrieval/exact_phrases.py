"""What a query quotes or excludes, as what is searched: its scope, and which passages may be hits."""

from dataclasses import replace

from query_api.query.phrases import Phrase, passages_holding, read_query
from query_api.retrieval.search_context import SearchContext, SearchFailed, run_with_timeout
from schemas.hits import PhraseInQuestion
from schemas.ids import DocumentKey


async def apply_phrases(context: SearchContext) -> tuple[SearchContext, tuple[PhraseInQuestion, ...]]:
    """The context without what is excluded, with what is quoted required, in a question only raised; and what was done.
    The keyword channel alone requires it of questions too. Raises SearchFailed."""
    query = read_query(context.request.q)
    if not query.phrases and not query.excluded:
        return context, ()
    looking = context.run(lambda: _applied(context))
    outcome = await run_with_timeout("phrases", context.settings.budgets.keyword_seconds, looking)
    if outcome.value is None:
        raise SearchFailed(f"What is quoted or excluded was not looked up: {outcome.error}")
    return outcome.value


def _applied(context: SearchContext) -> tuple[SearchContext, tuple[PhraseInQuestion, ...]]:
    """Blocks."""
    query, text, scope = read_query(context.request.q), context.snapshot.text, context.scope
    told: list[PhraseInQuestion] = []

    def documents_with(words: str, use: str) -> tuple[frozenset[str], frozenset[DocumentKey]]:
        found = passages_holding(text, Phrase(words), scope)
        documents = frozenset(found.values())
        told.append(PhraseInQuestion.model_validate({"words": words, "use": use, "documents": len(documents)}))
        return frozenset(found), documents

    if not query.text:
        for words in query.excluded:
            documents_with(words, "searched")
        return context, tuple(told)
    is_required = context.request.mode == "keyword" or not query.is_question
    holding = [documents_with(words, "required" if is_required else "raised") for words in query.phrases]
    excluded = [documents_with(words, "excluded")[1] for words in query.excluded]
    narrowed = replace(context, request=context.request.model_copy(update={"q": query.text}))
    if holding and is_required:
        scope = scope.within(frozenset.intersection(*(documents for _, documents in holding)))
        narrowed = replace(narrowed, holding=frozenset().union(*(passages for passages, _ in holding)))
    elif holding:
        narrowed = replace(narrowed, raised=frozenset().union(*(documents for _, documents in holding)))
    if left_out := frozenset[DocumentKey]().union(*excluded):
        fields = text.fields
        scope = scope.within(set(fields.keys(fields.live(scope).nonzero()[0])) - left_out)
    return replace(narrowed, scope=scope), tuple(told)
