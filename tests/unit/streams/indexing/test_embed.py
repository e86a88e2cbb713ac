"""The computing thread: what is tried again, what is waited out, and which texts are given up."""

import asyncio
import re
import threading
from collections.abc import Iterator, Sequence
from time import monotonic
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from indexer.document_pipeline import NO_EXTRACTOR
from indexer.embedding.encoder import EncodedText, HashingEncoder
from indexer.embedding.openai import EndpointEncoder
from indexer.errors import EncoderFailure, EncoderUnavailable, TextNotEncoded
from indexer.extraction.entity_mentions import decode_spans
from indexer.extraction.mention_tagger import TaggedSpan
from schemas.events import decode_document_event
from schemas.graph_delta import decode_contribution
from schemas.settings import LimitSettings
from streams.indexing.document_steps import Choices, DecodedEvent, EmbeddedDocument, LinkedDocument
from streams.indexing.embed import PROBE, DocumentBuilder, EncoderThread
from streams.runtime.partition_progress import Progress
from streams.worker_metrics import Stopwatch, WorkerMetrics
from tests.support.fakes.model_endpoints import BROKEN, CUT, Answer, EmbeddingsEndpoint, busy, embeddings_endpoint
from tests.support.fakes.worker import Bench, upsert
from tests.support.waiting import eventually

TEXTS = [f"text {number}" for number in range(6)]


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


async def test_each_text_gets_its_vector_in_order(bench: Bench) -> None:
    encoded = await bench.encoding.encode(["one", "two", "three"])
    vectors = [each.vector for each in encoded if isinstance(each, EncodedText)]
    assert np.array_equal(np.stack(vectors), HashingEncoder().encode(["one", "two", "three"]))
    assert await bench.encoding.encode([]) == []


async def test_the_encoder_goes_on_while_something_else_is_computed(bench: Bench) -> None:
    encoded = threading.Event()
    computing = asyncio.create_task(bench.encoding.compute(lambda: encoded.wait(10)))
    assert _are_vectors(await bench.encoding.encode(["a text"]))
    encoded.set()
    assert await computing


async def test_only_the_texts_to_blame_fail(bench: Bench) -> None:
    encoded = await bench.encoding.encode(["one", "poison", "two", "more poison", "three"])
    assert [isinstance(result, RuntimeError) for result in encoded] == [False, True, False, True, False]


async def test_while_the_model_fails_for_any_text_nothing_is_blamed_and_it_is_tried_again(bench: Bench) -> None:
    bench.encoder.failures_left = 4
    [vector] = await bench.encoding.encode(["fine"])
    assert not isinstance(vector, Exception)
    assert bench.metrics.registry.get_sample_value("thalweg_retries_total", {"target": "encoder"}) == 3
    assert not bench.progress.waiting_for


class CrashingEncoder(HashingEncoder):
    """A text with `poison` takes the whole encoder down: it answers nothing for the next calls either."""

    def __init__(self) -> None:
        self.down_for = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if any("poison" in text for text in texts):
            self.down_for = 6
        if self.down_for:
            self.down_for -= 1
            raise EncoderUnavailable("It is down.")
        return super().encode(texts)


@pytest.fixture
def endpoint() -> Iterator[EmbeddingsEndpoint]:
    with embeddings_endpoint() as running:
        yield running


@pytest.fixture
def asking(endpoint: EmbeddingsEndpoint) -> Iterator[EncoderThread]:
    encoder = EndpointEncoder(endpoint.settings(), HashingEncoder.dimension, request_texts=8)
    encoding = _encoding(encoder)
    yield encoding
    encoding.close()
    encoder.close()


def _encoding(encoder: Any) -> EncoderThread:
    return EncoderThread(
        encoder, WorkerMetrics(), Progress(), retry_seconds=(0.01, 0.02, 0.04), first_wait_seconds=0.005
    )


def _are_vectors(encoded: Sequence[Any]) -> bool:
    return all(isinstance(each, EncodedText) for each in encoded)


@pytest.mark.parametrize("passing", [BROKEN, CUT, busy(), Answer(503)])
async def test_what_passes_is_tried_three_times_more_and_the_batch_stays_whole(
    endpoint: EmbeddingsEndpoint, asking: EncoderThread, passing: Answer
) -> None:
    endpoint.script = [passing] * 3
    assert _are_vectors(await asking.encode(TEXTS))
    assert endpoint.requests == [TEXTS] * 4


async def test_a_rate_limit_is_waited_out_as_long_as_it_says(
    endpoint: EmbeddingsEndpoint, asking: EncoderThread
) -> None:
    endpoint.script = [busy("0.3")]
    began = monotonic()
    assert _are_vectors(await asking.encode(TEXTS))
    assert monotonic() - began >= 0.3


@pytest.mark.parametrize("choking", [BROKEN, Answer(400), Answer(change=lambda rows: rows[1:])])
async def test_a_text_that_fails_alone_is_given_up_with_what_the_encoder_said(
    endpoint: EmbeddingsEndpoint, asking: EncoderThread, choking: Answer
) -> None:
    endpoint.choking = {"text 4": choking}
    encoded = await asking.encode(TEXTS)
    assert _are_vectors([*encoded[:4], encoded[5]])
    assert isinstance(encoded[4], EncoderFailure)
    assert endpoint.url in str(encoded[4])
    sizes = [len(request) for request in endpoint.requests if request != [PROBE]]
    assert max(sizes) == 6
    assert sizes.count(6) == (4 if choking is BROKEN else 1)
    assert sizes.count(3) == 2


async def test_a_failing_batch_loses_no_other_batch(endpoint: EmbeddingsEndpoint, asking: EncoderThread) -> None:
    endpoint.script = [Answer()] + [BROKEN] * 2
    texts = [f"text {number}" for number in range(16)]
    assert _are_vectors(await asking.encode(texts))
    assert endpoint.requests == [texts[:8], texts[8:], texts[8:], texts[8:]]


@pytest.mark.parametrize("away", [BROKEN, busy(), Answer(401), Answer(404), Answer(change=lambda rows: [])])
async def test_while_the_endpoint_serves_nobody_nothing_is_given_up_and_it_goes_on_by_itself(
    endpoint: EmbeddingsEndpoint, asking: EncoderThread, away: Answer
) -> None:
    endpoint.otherwise = away
    encoding = asyncio.create_task(asking.encode(TEXTS))
    await eventually(lambda: endpoint.requests.count([PROBE]) >= 3)
    assert not encoding.done()
    assert {len(request) for request in endpoint.requests if request != [PROBE]} == {len(TEXTS)}
    endpoint.otherwise = Answer()
    assert _are_vectors(await encoding)


async def test_a_text_is_never_given_up_because_the_endpoint_is_busy(
    endpoint: EmbeddingsEndpoint, asking: EncoderThread
) -> None:
    endpoint.choking = {"text 4": busy()}
    encoding = asyncio.create_task(asking.encode(TEXTS))
    await eventually(lambda: endpoint.requests.count(["text 4"]) >= 9)
    endpoint.choking = {}
    assert _are_vectors(await encoding)


async def test_a_text_that_brings_the_encoder_down_every_time_is_given_up() -> None:
    encoding = _encoding(CrashingEncoder())
    encoded = await encoding.encode(["one", "poison", "two"])
    assert [isinstance(each, EncoderUnavailable) for each in encoded] == [False, True, False]
    encoding.close()


async def test_a_document_is_buried_with_a_reason_and_no_chunk_is_stored_without_a_vector() -> None:
    class Choking(HashingEncoder):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if any("poison" in text for text in texts):
                raise TextNotEncoded("The endpoint does not take the text (400).")
            return super().encode(texts)

    choking = Bench(encoder=Choking())  # type: ignore[arg-type]  # another double of the same port
    await choking.indexer.index([upsert(0, "default/a", "fine"), upsert(1, "default/b", "poison")])
    [letter] = choking.broker.letters()
    assert letter["thalweg.reason"] == "embedding_failed"
    assert letter["__connect.errors.exception.message"] == (
        "One of its chunks got no vector, so none was stored. The endpoint does not take the text (400)."
    )
    assert choking.broker.outcomes() == ["indexed", "dead_lettered"]
    assert [key.document_id for key in choking.documents.chunks] == ["a"]
    choking.close()


def tag_capitals(texts: Sequence[str]) -> tuple[NDArray[np.float32], list[list[TaggedSpan]]]:
    """Every capitalised word is a person."""
    found = [[TaggedSpan(*word.span(), "person", 0.9) for word in re.finditer("[A-Z][a-z]+", text)] for text in texts]
    return HashingEncoder().encode(texts), found


async def test_entities_are_tagged_as_texts_are_encoded_and_known_with_their_vectors(bench: Bench) -> None:
    encoding = EncoderThread(bench.encoder, bench.metrics, bench.progress, tag=tag_capitals)
    [(vector, spans)] = [
        each for each in await encoding.encode(["then Ann came"], tagged=True) if isinstance(each, tuple)
    ]
    assert np.array_equal(vector, HashingEncoder().encode(["then Ann came"])[0])
    assert spans is not None
    assert decode_spans(spans) == [TaggedSpan(5, 8, "person", 0.9)]
    untagged = await bench.encoding.encode(["then Ann came"], tagged=True)
    assert [each.spans for each in untagged if isinstance(each, EncodedText)] == [None]
    assert (encoding.tags, bench.encoding.tags) == (True, False)
    encoding.close()


async def test_a_stored_vector_without_its_entities_is_encoded_again_where_there_is_a_tagger(bench: Bench) -> None:
    encoding = EncoderThread(bench.encoder, bench.metrics, bench.progress, tag=tag_capitals)
    await bench.indexer.index([upsert(0, text="So Ann Banks came.")])
    builder = DocumentBuilder(bench.preparer, encoding, bench.thread, bench.documents, encode_texts=2)
    record = upsert(1, text="So Ann Banks came.")
    event = DecodedEvent.from_record(
        record, decode_document_event(record.key, record.value, (), LimitSettings()), Choices()
    )
    (embedded,) = (await builder.embed([event], Stopwatch())).values()
    assert isinstance(embedded, EmbeddedDocument)
    assert embedded.encoded == 1
    (linked,) = (await builder.link([embedded])).values()
    assert isinstance(linked, LinkedDocument)
    mentions = decode_contribution(linked.contribution).mentions
    assert {(each.name, each.entity_type) for each in mentions if each.entity_type} == {
        ("ann", "person"),
        ("banks", "person"),
    }
    encoding.close()


async def test_texts_of_which_nothing_is_to_be_extracted_are_not_tagged(bench: Bench) -> None:
    tagged: list[str] = []

    def tag(texts: Sequence[str]) -> tuple[NDArray[np.float32], list[list[TaggedSpan]]]:
        tagged.extend(texts)
        return tag_capitals(texts)

    encoding = EncoderThread(bench.encoder, bench.metrics, bench.progress, tag=tag)
    builder = DocumentBuilder(bench.preparer, encoding, bench.thread, bench.documents, encode_texts=2)
    record = upsert(0, text="So Ann Banks came.")
    event = decode_document_event(record.key, record.value, (), LimitSettings())
    plain = DecodedEvent.from_record(record, event, Choices(extractors={"default": NO_EXTRACTOR}))
    usual = DecodedEvent.from_record(record, event, Choices())
    made = []
    for each, are_tagged, encoded in ((plain, 0, 1), (usual, 1, 1), (plain, 1, 0)):  # what was not tagged is not whole
        (embedded,) = (await builder.embed([each], Stopwatch())).values()
        assert isinstance(embedded, EmbeddedDocument)
        assert (len(tagged), embedded.encoded) == (are_tagged, encoded)
        (linked,) = (await builder.link([embedded])).values()
        assert isinstance(linked, LinkedDocument)
        made.append((embedded.spans, [each.entity_type for each in decode_contribution(linked.contribution).mentions]))
    assert [spans == (None,) for spans, _ in made] == [True, False, True]
    assert [bool(types) and "person" in types for _, types in made] == [False, True, False]
    encoding.close()
