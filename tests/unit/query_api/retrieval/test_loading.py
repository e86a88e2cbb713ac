"""The service's encoder: the worker's own, also while what it asks is away."""

from pathlib import Path

import msgspec
import pytest

from indexer.errors import EncoderUnavailable
from indexer.generations import open_generation
from query_api.retrieval.loading import LoadedEngine
from schemas.settings import EmbeddingSettings
from tests.embeddings_endpoint import embeddings_endpoint
from tests.unit.query_api.scripted_engine import MANIFEST


def test_an_endpoint_that_is_away_is_loaded_from_what_the_generation_says_and_asked_again(tmp_path: Path) -> None:
    made_with = {"embedding_provider": "openai", "embedding_digest": "openai/words/384", "dimension": 384}
    open_generation(tmp_path, msgspec.structs.replace(MANIFEST, **made_with))
    with embeddings_endpoint() as endpoint:
        settings = endpoint.settings(provider="auto")
        assert LoadedEngine().load_encoder(settings, tmp_path).encode_queries(["a question"]).shape == (1, 384)
    encoder = LoadedEngine().load_encoder(settings, tmp_path)
    assert (encoder.digest, encoder.dimension) == ("openai/words/384", 384)
    with pytest.raises(EncoderUnavailable, match="cannot be reached"):
        encoder.encode_queries(["a question"])
    with pytest.raises(EncoderUnavailable):
        LoadedEngine().load_encoder(endpoint.settings(), tmp_path / "nothing stored yet")


def test_local_models_need_no_endpoint(tmp_path: Path) -> None:
    assert LoadedEngine().load_encoder(EmbeddingSettings(provider="hashing"), tmp_path).provider == "hashing"
