"""Envelopes and the collection's name, which says what is in it."""

import json
from pathlib import Path

import pytest

from query_api.evaluation.corpus import Corpus, corpus_of
from query_api.evaluation.datasets import read_folder
from schemas.errors import WrongSetting
from tests.unit.query_api.evaluation.folders import CORPUS, write_folder


def corpus(folder: Path, pool: str | None = None) -> Corpus:
    return corpus_of([read_folder(folder)], pool)


def test_a_document_becomes_an_envelope_of_plain_text(tmp_path: Path) -> None:
    made = corpus(write_folder(tmp_path / "birds of prey", corpus=[*CORPUS, {"_id": "d4"}]))
    assert made.collection.startswith("birds-of-prey-")
    assert made.unfilled == 1
    assert list(made.envelopes) == ["d1", "d2", "d3"]
    assert json.loads(made.envelopes["d1"]) == {
        "id": "d1",
        "collection": made.collection,
        "content_type": "text/plain",
        "title": "Heron",
        "content": "The heron stands in the river.",
        "metadata": {"year": 1958},
    }
    title_only = json.loads(made.envelopes["d3"])
    assert (title_only["title"], title_only["content"]) == ("Only a title", "")


def test_the_name_changes_with_the_corpus_and_not_with_its_order(tmp_path: Path) -> None:
    name = corpus(write_folder(tmp_path / "a")).collection
    assert corpus(write_folder(tmp_path / "x" / "a", corpus=CORPUS[::-1], compressed=True)).collection == name
    changed = [CORPUS[0] | {"metadata": {"year": 1959}}, *CORPUS[1:]]
    assert corpus(write_folder(tmp_path / "y" / "a", corpus=changed)).collection != name
    renamed = [CORPUS[0], CORPUS[1], CORPUS[2] | {"_id": "d30"}]
    assert corpus(write_folder(tmp_path / "z" / "a", corpus=renamed)).collection != name


def test_a_pool_holds_all_folders_each_under_its_name(tmp_path: Path) -> None:
    folders = [read_folder(write_folder(tmp_path / name)) for name in ("a", "b")]
    pooled = corpus_of(folders, "both")
    assert pooled.collection.startswith("both-")
    assert list(pooled.envelopes) == ["a/d1", "a/d2", "a/d3", "b/d1", "b/d2", "b/d3"]


def test_names_that_cannot_be_keys_are_refused(tmp_path: Path) -> None:
    twice = [read_folder(write_folder(tmp_path / place / "same")) for place in ("a", "b")]
    with pytest.raises(WrongSetting, match="the same name"):
        corpus_of(twice, "both")
    with pytest.raises(WrongSetting, match="cannot be published"):
        corpus(write_folder(tmp_path / "c", corpus=[*CORPUS, {"_id": "a\x07b", "text": "rings"}]))
    assert len(corpus(write_folder(tmp_path / "d"), "n" * 300).collection) == 128
