"""The last steps of a search: which places stay, and what is told beside their hits."""

from query_api.query.question import Question
from query_api.retrieval.fusion import Place
from query_api.retrieval.graph_stage import Following
from query_api.retrieval.results.confidence import Evidence, with_confidence
from query_api.retrieval.results.context_windows import span_of, with_contexts
from query_api.retrieval.results.explanation import factors_of
from query_api.retrieval.results.hits import Texts
from query_api.retrieval.results.selection import distinct, likely_enough
from query_api.retrieval.stages import TEXTS_OF_HITS, Account, Reading, read_texts
from query_api.retrieval.text_stage import TextChannels
from schemas.hits import Hit


class Finishing:
    """One search's. Every step depends on a place and on those before it only, so pages agree."""

    def __init__(
        self, reading: Reading, question: Question, channels: TextChannels, following: Following, account: Account
    ) -> None:
        self._reading = reading
        self._question = question
        self._channels = channels
        self._following = following
        self._account = account

    async def chosen(self, places: list[Place]) -> list[Place]:
        """The places, from the first of the order on, with their confidence, without those that the request leaves
        out. Raises SearchFailed."""
        reading, request = self._reading, self._reading.request
        judged = self._with_confidence(places)
        if request.min_confidence is not None:
            known = (place.confidence for place in judged if place.confidence is not None)
            self._account.best_confidence = max(known, default=None)
        likely = likely_enough(judged, request.min_confidence)
        return await distinct_places(reading, self._question, likely, self._account)

    async def told(self, hits: list[Hit], texts: Texts) -> list[Hit]:
        """The hits with what was asked for beside them: factors, contexts. Raises SearchFailed."""
        reading, request = self._reading, self._reading.request
        if request.explain:
            names, findings, evidence = await self._following.names(), self._following.findings, self._evidence()
            snapshot, now = reading.snapshot, reading.now
            factors = await reading.run(lambda: factors_of(hits, texts, snapshot, names, findings, evidence, now))
            hits = [hit.model_copy(update={"factors": each}) for hit, each in zip(hits, factors, strict=True)]
        if request.context != "parent":
            chunks = {chunk.id: chunk for of_passage in texts.chunks.values() for chunk in of_passage}
            spans = [span_of(request, chunks[hit.chunk_id]) for hit in hits]
            step = reading.run(lambda: reading.snapshot.text.chunks_in(spans))
            around = await read_texts(reading, "The texts around the hits", step, self._account)
            hits = with_contexts(hits, request, chunks, around)
        return hits

    def _with_confidence(self, places: list[Place]) -> list[Place]:
        evidence, judge, mode = self._evidence(), self._reading.settings.judge, self._reading.request.mode
        return places if evidence is None or judge is None else with_confidence(places, mode, evidence, judge)

    def _evidence(self) -> Evidence | None:
        """How what was found compares with the question; None in a mode that does not compare, or where it failed."""
        following, structured = self._following, self._channels.structured
        if following.compared is None or following.comparer is None:
            return None
        return Evidence(
            following.compared,
            following.comparer.asked_idf,
            following.findings.gate,
            following.findings.scores,
            meaning=self._channels.question_vector is not None,
            decided=frozenset(each.passage_id for each in structured.candidates if structured.conclusiveness),
        )


async def distinct_places(reading: Reading, question: Question, places: list[Place], account: Account) -> list[Place]:
    """The places without the duplicates that the request asks to leave out. Raises SearchFailed."""
    request, text, passages = reading.request, reading.snapshot.text, reading.passages
    if request.duplicates == "keep":
        return places
    step = reading.run(lambda: distinct(places, request, question, text, passages))
    return await read_texts(reading, TEXTS_OF_HITS, step, account)
