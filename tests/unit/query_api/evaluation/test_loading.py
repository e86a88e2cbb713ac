"""A corpus is brought in once, completed when it was cut off, and never called complete when it is not."""

from pathlib import Path

import pytest

from query_api.evaluation import loading
from query_api.evaluation.corpus import Corpus, corpus_of
from query_api.evaluation.datasets import read_folder
from query_api.evaluation.loading import batches, load
from schemas.errors import Failure, WrongSetting
from tests.unit.query_api.evaluation.folders import write_folder
from tests.unit.query_api.evaluation.pretend_service import PretendService


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return corpus_of([read_folder(write_folder(tmp_path / "birds"))])


@pytest.fixture
def service() -> PretendService:
    return PretendService()


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PAUSE_SECONDS", 0)


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
    with pytest.raises(WrongSetting, match=r"1 documents are refused, such as 'd1': The metadata is too large\. Mend"):
        load(service.client, corpus)
    service.refusals = [{"status": 503, "detail": "Kafka did not confirm."}] * 2
    with pytest.raises(Failure, match="Kafka did not confirm"):
        load(service.client, corpus, patience_seconds=-1)


def test_a_worker_that_is_not_there_is_told(corpus: Corpus) -> None:
    service = PretendService(behind=None)
    with pytest.raises(Failure, match=r"3 records are waiting in Kafka.*Is a worker running\?.*goes on from here"):
        load(service.client, corpus, patience_seconds=0)


def test_batches_are_limited_by_number_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "BATCH_DOCUMENTS", 3)
    monkeypatch.setattr(loading, "BATCH_BYTES", 10)
    sizes = [4, 4, 4, 1, 1, 1, 1, 50, 2]
    made = list(batches({str(number): b"x" * size for number, size in enumerate(sizes)}))
    assert [[len(body) for body in batch] for batch in made] == [[4, 4], [4, 1, 1], [1, 1], [50], [2]]
