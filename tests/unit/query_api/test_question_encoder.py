"""An encoder that is away is left alone for a while, and found again."""

import asyncio
import shutil
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from indexer.embedding.encoder import HashingEncoder, PromptedEncoder
from indexer.errors import EncoderBusy, EncoderFailure, EncoderRefused, EncoderUnavailable, TextNotEncoded
from indexer.generation_folders import make_generation, open_generation, switch_to
from query_api.index.text.vectors import CosineSpread
from query_api.question_encoder import BACKGROUND, PROBES, GuardedEncoder, ServedModel, load_encoder
from schemas.settings import EmbeddingSettings
from tests.support.fakes.engine import MANIFEST
from tests.support.fakes.model_endpoints import embeddings_endpoint
from tests.support.waiting import eventually


class FailingEncoder(HashingEncoder):
    """Fails with `failure` while it has one."""

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.asked = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return super().encode(texts)


class Clock:
    """Advances by call."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def made() -> tuple[GuardedEncoder, FailingEncoder, Clock]:
    encoder, clock = FailingEncoder(), Clock()
    return GuardedEncoder(PromptedEncoder(encoder), reset_seconds=5, clock=clock), encoder, clock


@pytest.mark.parametrize("failure", [EncoderUnavailable("It is away."), EncoderRefused("Not with this key.")])
def test_while_it_rests_searches_fail_at_once_and_then_one_of_them_looks(made: Any, failure: EncoderFailure) -> None:
    resting, encoder, clock = made
    encoder.failure = failure
    for now, asked in ((0.0, 1), (1.0, 1), (4.9, 1), (5.0, 2), (9.9, 2), (10.0, 3)):
        clock.now = now
        with pytest.raises(EncoderFailure, match=str(failure)):
            resting.encode_queries(["q"])
        assert encoder.asked == asked
    assert resting.problem == str(failure)
    encoder.failure = None
    clock.now = 15.0
    resting.probe()
    assert resting.problem is None
    assert resting.encode_queries(["q"]).shape == (1, 384)


def test_probe_measures_how_alike_unrelated_texts_are(made: Any) -> None:
    resting, encoder, clock = made
    encoder.failure = EncoderUnavailable("It is away.")
    resting.probe()
    assert resting.background == BACKGROUND
    encoder.failure, clock.now = None, 5.0
    resting.probe()
    vectors = encoder.encode(PROBES)
    cosines = [float(one @ other) for one, other in combinations(vectors, 2)]
    assert resting.background == CosineSpread(
        pytest.approx(np.mean(cosines), abs=1e-6), pytest.approx(np.std(cosines), abs=1e-6), BACKGROUND.texts
    )


def test_a_rate_limit_is_respected(made: Any) -> None:
    resting, encoder, clock = made
    encoder.failure = EncoderBusy("It is busy.", retry_after_seconds=60)
    resting.probe()
    clock.now = 59.0
    resting.probe()
    assert encoder.asked == 1


def test_a_question_it_cannot_take_does_not_make_it_rest(made: Any) -> None:
    resting, encoder, _ = made
    encoder.failure = TextNotEncoded("It is too long.")
    for _ in range(2):
        with pytest.raises(TextNotEncoded):
            resting.encode_queries(["q"])
    assert (encoder.asked, resting.problem) == (2, None)


def test_an_endpoint_that_is_away_is_loaded_from_what_the_generation_says_and_asked_again(tmp_path: Path) -> None:
    made_with = {"embedding_provider": "openai", "embedding_digest": "openai/words/384", "dimension": 384}
    open_generation(tmp_path, msgspec.structs.replace(MANIFEST, **made_with))
    with embeddings_endpoint() as endpoint:
        settings = endpoint.settings(provider="auto")
        assert load_encoder(settings, tmp_path).encode_queries(["a question"]).shape == (1, 384)
    encoder = load_encoder(settings, tmp_path)
    assert (encoder.digest, encoder.dimension) == ("openai/words/384", 384)
    with pytest.raises(EncoderUnavailable, match="cannot be reached"):
        encoder.encode_queries(["a question"])
    with pytest.raises(EncoderUnavailable):
        load_encoder(endpoint.settings(), tmp_path / "nothing stored yet")


async def test_model_of_a_damaged_generation_is_loaded_once_it_is_replaced(tmp_path: Path) -> None:
    generation = open_generation(tmp_path, msgspec.structs.replace(MANIFEST, embedding_provider="hashing"))
    for path in (generation.manifest_path, generation.manifest_copy_path):
        path.write_bytes(b"")
    model = ServedModel(EmbeddingSettings(provider="hashing"), tmp_path, load_encoder, retry_seconds=0.01)
    running = asyncio.create_task(model.run())
    await eventually(lambda: "manifest.json cannot be read" in (model.problem(None) or ""))
    shutil.rmtree(generation.root)
    made_with = {"embedding_provider": "hashing", "embedding_digest": HashingEncoder.digest}
    other = msgspec.structs.replace(MANIFEST, generation="g0002", dimension=HashingEncoder.dimension, **made_with)
    switch_to(make_generation(tmp_path, other))
    await asyncio.wait_for(model.loaded.wait(), 20)
    assert model.problem(other) is None
    running.cancel()


def test_local_models_need_no_endpoint(tmp_path: Path) -> None:
    assert load_encoder(EmbeddingSettings(provider="hashing"), tmp_path).provider == "hashing"
