"""An answer written from hits by the real client of a scripted model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from indexer.runtime.chat_model import ChatModel
from query_api.answers.answer import compose
from query_api.answers.model.writer import AnswerWriter
from query_api.answers.sentences import TermIdf
from schemas.answers import Answer, AnswerCitation, AnswerDelta, TokenUsage
from schemas.frames import Done
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.support.fakes.model_endpoints import ChatEndpoint
from tests.unit.query_api.answers.found import HITS, QUESTION, idf_of


class Writing(NamedTuple):
    frames: list[AnswerCitation | AnswerDelta]
    done: Done
    counted: list[tuple[str, int, int]]

    @property
    def answer(self) -> Answer:
        assert self.done.answer is not None
        return self.done.answer

    @property
    def streamed(self) -> str:
        return "".join(frame.text for frame in self.frames if isinstance(frame, AnswerDelta))


async def written(
    endpoint: ChatEndpoint, hits: Sequence[Hit] = HITS, question: str = QUESTION, seconds: float = 5.0, **options: Any
) -> Writing:
    """Without confidence in the hits, so that nothing is refused beforehand."""
    unsure = [hit.model_copy(update={"confidence": None}) for hit in hits]
    request = SearchRequest(q=question, answer=True, answer_form="model", **options)
    extract = compose(request, unsure, TermIdf(idf_of(question), 5.0))
    done = Done(retrieval_id="r", hits=len(hits), timings={}, next_offset=None, answer=extract)
    counted: list[tuple[str, int, int]] = []

    def count(caller: str, usage: TokenUsage) -> None:
        counted.append((caller, usage.prompt_tokens, usage.completion_tokens))

    model = ChatModel(endpoint.settings(timeout_seconds=seconds), retries=0)
    try:
        writing = AnswerWriter(model, model, count).write(request, unsure, done, "read")
        return Writing([frame async for frame in writing], done, counted)
    finally:
        await model.close()
