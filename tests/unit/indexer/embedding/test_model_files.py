"""Which model it is: whatever decides a vector is in its digest, and nothing else."""

import json
from pathlib import Path

import pytest

from indexer.embedding.model_files import model_digest
from indexer.embedding.onnx_encoder import open_bert
from tests.unit.indexer.embedding.tiny_bert import FIRST, MODULES, write_model


def changed(folder: Path, name: str, content: str | None) -> Path:
    """The model with one file put there, or taken away for None."""
    write_model(folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).unlink(missing_ok=True) if content is None else (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("1_Pooling/config.json", json.dumps(FIRST)),
        ("modules.json", json.dumps(MODULES[:2])),
        ("modules.json", None),
        ("tokenizer.json", "{}"),
        ("tokenizer_config.json", '{"do_lower_case": true}'),
        ("sentence_bert_config.json", '{"max_seq_length": 6}'),
        ("config_sentence_transformers.json", '{"prompts": {"query": "query: "}, "default_prompt_name": "query"}'),
        ("vocab.txt", "river"),
        ("sentencepiece.bpe.model", "x"),
        ("2_Dense/model.safetensors", "x"),
        ("2_Dense/pytorch_model.bin", "x"),
        ("0_Transformer/config.json", "{}"),
        ("config.json", "{}"),
    ],
)
def test_models_of_equal_weights_are_told_apart_by_what_else_decides_a_vector(
    tmp_path: Path, name: str, content: str | None
) -> None:
    for folder in ("plain", "changed"):
        (tmp_path / folder).mkdir()
    plain = model_digest(write_model(tmp_path / "plain"))
    assert model_digest(changed(tmp_path / "changed", name, content)) != plain


@pytest.mark.parametrize("name", ["README.md", "LICENSE", "data_config.json", "train_script.py"])
def test_what_decides_no_vector_is_left_out_and_so_is_where_the_model_is(tmp_path: Path, name: str) -> None:
    for folder in ("plain", "changed"):
        (tmp_path / folder).mkdir()
    assert model_digest(changed(tmp_path / "changed", name, "x")) == model_digest(write_model(tmp_path / "plain"))


def test_of_weights_in_both_formats_those_count_that_are_read(tmp_path: Path) -> None:
    plain = model_digest(write_model(tmp_path))
    (tmp_path / "pytorch_model.bin").write_text("x")
    assert model_digest(tmp_path) == plain


def test_an_encoder_of_another_pooling_is_another_encoder(tmp_path: Path) -> None:
    for folder in ("mean", "first"):
        (tmp_path / folder).mkdir()
    mean = open_bert(str(write_model(tmp_path / "mean")), "onnx")
    first = open_bert(str(write_model(tmp_path / "first", pooling=FIRST)), "onnx")
    assert mean.encode(["river bank"]).tolist() != first.encode(["river bank"]).tolist()
    assert mean.digest != first.digest
