"""What stands before a text, how long its vector is, and that no two ways of making vectors are taken for one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from indexer.embedding.backends import PROMPTS_FILE, load_encoder, prompts_in
from indexer.embedding.encoder import HashingEncoder, PromptedEncoder, Prompts, TokenStates
from indexer.embedding.onnx_encoder import open_bert
from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingSettings
from tests.support.fakes.model_endpoints import embeddings_endpoint
from tests.unit.indexer.embedding.tiny_bert import WIDTH, write_model

E5 = {"prompts": {"query": "river ", "passage": "sea "}, "default_prompt_name": None}


def with_config(folder: Path, config: object) -> Path:
    (folder / PROMPTS_FILE).write_text(config if isinstance(config, str) else json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (E5, Prompts("river ", "sea ")),
        ({"prompts": {"query": "q", "document": "d", "passage": "p"}}, Prompts("q", "d")),
        ({"prompts": {"query": "q", "document": "", "passage": "p"}}, Prompts("q", "p")),
        ({"prompts": {"query": "", "document": ""}, "default_prompt_name": "query"}, Prompts()),
        ({"prompts": {"clustering": "c", "query": "q"}, "default_prompt_name": "clustering"}, Prompts("q", "c")),
        ({"prompts": {"search": "s"}, "default_prompt_name": "search"}, Prompts("s", "s")),
        ({"prompts": {}, "default_prompt_name": None}, Prompts()),
        ({"prompts": None}, Prompts()),
        ({}, Prompts()),
    ],
)
def test_a_models_prompts_are_read_from_its_folder(tmp_path: Path, config: object, expected: Prompts) -> None:
    assert prompts_in(tmp_path) == Prompts()
    assert prompts_in(with_config(tmp_path, config)) == expected


@pytest.mark.parametrize("config", ["{", "[]", {"prompts": "query: "}, {"prompts": {"query": ["a"]}}])
def test_prompts_that_cannot_be_read_are_refused(tmp_path: Path, config: object) -> None:
    with pytest.raises(IncompatibleGeneration, match=PROMPTS_FILE):
        prompts_in(with_config(tmp_path, config))


def test_questions_and_passages_have_each_their_prompt_and_settings_go_before_the_models_own(tmp_path: Path) -> None:
    folder = str(with_config(write_model(tmp_path), E5))
    plain = open_bert(folder, "onnx")
    own = load_encoder(EmbeddingSettings(provider="onnx", model=folder))
    set_ = load_encoder(EmbeddingSettings(provider="onnx", model=folder, query_prefix="hill ", passage_prefix=""))
    for encoder, query, passage in ((own, "river ", "sea "), (set_, "hill ", "")):
        np.testing.assert_array_equal(encoder.encode_queries(["bank"]), plain.encode([f"{query}bank"]))
        np.testing.assert_array_equal(
            encoder.encode(["bank", "hill"]), plain.encode([f"{passage}bank", f"{passage}hill"])
        )


def test_an_endpoint_is_sent_the_prompts() -> None:
    with embeddings_endpoint() as endpoint:
        encoder = load_encoder(endpoint.settings(query_prefix="query: ", passage_prefix="passage: ", dimension=16))
        assert encoder.encode_queries(["weirs"]).shape == encoder.encode(["A weir."]).shape == (1, 16)
    assert endpoint.requests == [["query: weirs"], ["passage: A weir."]]
    assert [body["dimensions"] for body in endpoint.bodies] == [16, 16]


def test_a_prompt_that_pooling_leaves_out_is_refused(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    pooling = folder / "1_Pooling" / "config.json"
    pooling.write_text(json.dumps(json.loads(pooling.read_text()) | {"include_prompt": False}))
    with pytest.raises(IncompatibleGeneration, match="leaves the prompt out"):
        load_encoder(EmbeddingSettings(provider="onnx", model=str(folder)))


@pytest.mark.parametrize("provider", ["onnx", "onnx-int8", "hashing"])
def test_vectors_are_cut_to_their_first_numbers_and_have_length_1(tmp_path: Path, provider: Any) -> None:
    folder = str(write_model(tmp_path))
    whole, cut = (
        load_encoder(EmbeddingSettings(provider=provider, model=folder, dimension=dimension)) for dimension in (None, 3)
    )
    assert cut.dimension == 3
    texts = ["river sea", "hill", "bank bank river"]
    expected = whole.encode(texts)[:, :3]
    some = np.linalg.norm(expected, axis=1) > 0
    vectors = cut.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    scaled = expected[some] / np.linalg.norm(expected[some], axis=1, keepdims=True)
    np.testing.assert_allclose(vectors[some], scaled, rtol=1e-6)
    np.testing.assert_array_equal(vectors, np.concatenate([cut.encode([text]) for text in texts]))
    assert cut.encode([]).shape == (0, 3)


def test_whatever_makes_other_vectors_has_another_digest(tmp_path: Path) -> None:
    def digest(**settings: Any) -> str:
        return load_encoder(EmbeddingSettings(provider="onnx", model=str(folder), **settings)).digest

    folder = write_model(tmp_path)
    plain = open_bert(str(folder), "onnx").digest
    assert digest() == digest(dimension=WIDTH) == digest(query_prefix="", passage_prefix="") == plain
    different = [
        {"query_prefix": "a"},
        {"passage_prefix": "a"},
        {"dimension": 4},
        {"dimension": 5},
        {"query_prefix": "b"},
    ]
    assert len({plain, *(digest(**settings) for settings in different)}) == 6
    assert not PromptedEncoder(HashingEncoder(), Prompts("a")).is_plain
    assert PromptedEncoder(HashingEncoder()).is_plain


def test_token_offsets_are_those_of_the_text_without_its_prompt(tmp_path: Path) -> None:
    model = open_bert(str(write_model(tmp_path)), "onnx")
    encoder = PromptedEncoder(model, Prompts(passage="sea "))

    def read(texts: Sequence[str], states: Sequence[TokenStates]) -> list[tuple[str, list[tuple[int, int]]]]:
        return [
            (text, [(start, end) for start, end in each.offsets if end > 0])
            for text, each in zip(texts, states, strict=True)
        ]

    vectors, results = encoder.encode_tokens(["river stone"], read)
    assert results == [("river stone", [(0, 5), (6, 11)])]
    np.testing.assert_array_equal(vectors, encoder.encode(["river stone"]))
