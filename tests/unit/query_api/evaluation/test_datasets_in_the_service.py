"""A corpus: its envelopes and name; published once, and completed when that was interrupted."""

import json
from pathlib import Path

import pytest

from query_api.evaluation import datasets as corpus_module
from query_api.evaluation.datasets import Corpus, batches, corpus_of, load, read_folder
from schemas.errors import Failure, WrongSetting
from tests.unit.query_api.evaluation.folders import CORPUS, write_folder
from tests.unit.query_api.evaluation.pretend_service import PretendService


def corpus_in(folder: Path, pool: str | None = None) -> Corpus:
    return corpus_of([read_folder(folder)], pool)


def test_a_document_becomes_an_envelope_of_plain_text(tmp_path: Path) -> None:
    made = corpus_in(write_folder(tmp_path / "birds of prey", corpus=[*CORPUS, {"_id": "d4"}]))
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
    name = corpus_in(write_folder(tmp_path / "a")).collection
    assert corpus_in(write_folder(tmp_path / "x" / "a", corpus=CORPUS[::-1], compressed=True)).collection == name
    changed = [CORPUS[0] | {"metadata": {"year": 1959}}, *CORPUS[1:]]
    assert corpus_in(write_folder(tmp_path / "y" / "a", corpus=changed)).collection != name
    renamed = [CORPUS[0], CORPUS[1], CORPUS[2] | {"_id": "d30"}]
    assert corpus_in(write_folder(tmp_path / "z" / "a", corpus=renamed)).collection != name


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
        corpus_in(write_folder(tmp_path / "c", corpus=[*CORPUS, {"_id": "a\x07b", "text": "rings"}]))
    assert len(corpus_in(write_folder(tmp_path / "d"), "n" * 300).collection) == 128


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return corpus_of([read_folder(write_folder(tmp_path / "birds"))])


@pytest.fixture
def service() -> PretendService:
    return PretendService()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "PAUSE_SECONDS", 0)


def test_what_is_not_there_is_published_and_waited_for(service: PretendService, corpus: Corpus) -> None:
    service.behind = 3
    told: list[int] = []
    loaded = load(service.client, corpus, told.append)
    assert (loaded.documents, loaded.sent, loaded.missing, loaded.token) == (3, 3, (), "0:2")
    assert {document["collection"] for document in service.published} == {corpus.collection}
    assert sum(told) == 3


def test_what_is_there_is_not_sent_again(service: PretendService, corpus: Corpus) -> None:
    load(service.client, corpus)
    told: list[int] = []
    again = load(service.client, corpus, told.append)
    assert (again.documents, again.sent, len(service.published)) == (3, 0, 3)
    assert sum(told) == 3


def test_a_load_that_was_cut_off_is_completed(service: PretendService, corpus: Corpus) -> None:
    load(service.client, corpus)
    del service.searchable["d2"]
    told: list[int] = []
    again = load(service.client, corpus, told.append)
    assert (again.sent, again.documents, [each["id"] for each in service.published]) == (1, 3, ["d1", "d2", "d3", "d2"])
    assert sum(told) == 3


def test_a_document_that_was_not_indexed_is_told(service: PretendService, corpus: Corpus) -> None:
    service.never_indexed = {"d2"}
    loaded = load(service.client, corpus)
    assert (loaded.documents, loaded.missing) == (2, ("d2",))


def test_a_collection_that_somebody_else_wrote_to_is_not_measured(service: PretendService, corpus: Corpus) -> None:
    service.searchable["stray"] = {"collection": corpus.collection, "position": "0:0"}
    with pytest.raises(WrongSetting, match="holds 1 documents that the folder does not, such as stray"):
        load(service.client, corpus)
    assert not service.published


def test_a_refused_document_ends_the_load_and_a_log_out_of_reach_is_tried_again(
    service: PretendService, corpus: Corpus
) -> None:
    service.refusals = [{"status": 503, "detail": "Kafka did not confirm."}]
    assert load(service.client, corpus).documents == 3
    service.searchable.clear()
    service.refusals = [{"status": 413, "detail": "The metadata is too large."}]
    with pytest.raises(WrongSetting, match=r"1 documents are refused, such as 'd1': The metadata is too large.*Repair"):
        load(service.client, corpus)
    service.refusals = [{"status": 503, "detail": "Kafka did not confirm."}] * 2
    with pytest.raises(Failure, match="Kafka did not confirm"):
        load(service.client, corpus, timeout_seconds=-1)


def test_a_worker_that_is_not_there_is_told(corpus: Corpus) -> None:
    service = PretendService(behind=None)
    with pytest.raises(Failure, match=r"3 records are waiting in Kafka.*Is a worker running\?.*continues from here"):
        load(service.client, corpus, timeout_seconds=0)


def test_batches_are_limited_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "BATCH_DOCUMENTS", 3)
    monkeypatch.setattr(corpus_module, "BATCH_BYTES", 10)
    sizes = [4, 4, 4, 1, 1, 1, 1, 50, 2]
    made = list(batches({str(number): b"x" * size for number, size in enumerate(sizes)}))
    assert [[len(body) for body in batch] for batch in made] == [[4, 4], [4, 1, 1], [1, 1], [50], [2]]
