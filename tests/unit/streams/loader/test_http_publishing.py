"""Loading through the query service."""

import json
from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from schemas.errors import Failure, WrongSetting
from schemas.events import ENVELOPE_TYPE
from schemas.ids import DocumentKey
from schemas.progress_bars import Bar
from schemas.settings import LimitSettings
from streams.loader.http_publishing import BATCH_DOCUMENTS, ServicePublisher
from streams.loader.loader import Loader
from streams.loader.publishing import ABSENT, Followed, Published
from streams.loader.sources import Record
from streams.settings import WorkerSettings


class MemoryService:
    """A log of one partition; what it says of a document is scripted by its id."""

    def __init__(
        self, statuses: dict[str, list[str]] | None = None, refused: dict[str, list[int]] | None = None
    ) -> None:
        self.log: list[tuple[str, dict[str, Any] | None]] = []
        self.batches: list[int] = []
        self.reached: int | None = None
        self.holding: dict[str, list[str]] = {}
        self._statuses = statuses or {}
        self._refused = refused or {}

    def publish(self, envelopes: Sequence[bytes]) -> dict[str, Any]:
        accepted, refused = [], []
        self.batches.append(len(envelopes))
        for index, each in enumerate(envelopes):
            document = json.loads(each)
            if statuses := self._refused.get(document["id"]):
                refused.append(
                    {"index": index, "status": statuses.pop(0), "reason": "too_large", "detail": "Too large."}
                )
                continue
            self.log.append((document["id"], document))
            accepted.append({"index": index, "position": f"0:{len(self.log) - 1}"})
        return {
            "token": f"0:{len(self.log) - 1}@5f3a9c1e" if accepted else "",
            "accepted": accepted,
            "refused": refused,
        }

    def withdraw(self, _collection: str, document_id: str) -> dict[str, Any]:
        self.log.append((document_id, None))
        return {"token": f"0:{len(self.log) - 1}@5f3a9c1e"}

    def get(self, _path: str) -> dict[str, Any]:
        return {"positions": f"0:{len(self.log) - 1 if self.reached is None else self.reached}"}

    def document_status(self, _collection: str, document_id: str, _token: str) -> dict[str, Any]:
        script = self._statuses.get(document_id, ["indexed"])
        status = script.pop(0) if len(script) > 1 else script[0]
        return {"status": status, "message": f"It is {status}.", "notes": []}

    def documents(self, collection: str) -> Iterable[dict[str, Any]]:
        mark = {"loaded_from": "folder:/docs-00000000"}
        return [
            {"id": f"{collection}.md", "metadata": mark, "stated_fields": []},
            {"id": "own.md", "metadata": mark, "stated_fields": ["loaded_from"]},
        ]

    def collections_with(self, document_id: str) -> list[str]:
        return self.holding.get(document_id, [])

    def close(self) -> None: ...


def raw(document_id: str, value: bytes | None = b"# Words", **headers: str) -> Record:
    fields = {"content-type": "text/markdown"} | {name.replace("_", "-"): text for name, text in headers.items()}
    sent = tuple((name, text.encode()) for name, text in fields.items()) if value is not None else ()
    return Record(DocumentKey("m", document_id), value, sent, document_id)


def send(service: MemoryService, *records: Record, patience: float | None = 5.0) -> tuple[Followed, Published]:
    published = Published()
    publisher = ServicePublisher(service, LimitSettings(), sleep=lambda _seconds: None)
    return publisher.send(records, published, Bar, patience), published


def test_a_file_becomes_the_envelope_that_says_the_same() -> None:
    service = MemoryService()
    send(service, raw("a.md", content_location="https://x.org/a.md"))
    [(_, document)] = service.log
    assert document is not None
    assert b64decode(document["content_base64"]) == b"# Words"
    expected = {"collection": "m", "content_type": "text/markdown", "uri": "https://x.org/a.md"}
    assert {name: document[name] for name in expected} == expected


def test_an_envelope_is_sent_as_it_stands() -> None:
    service = MemoryService()
    line = b'{"id": "a", "collection": "m", "content": "x", "version": 7}'
    send(service, Record(DocumentKey("m", "a"), line, (("content-type", ENVELOPE_TYPE.encode()),), "lines:1"))
    assert service.log == [("a", json.loads(line))]


def test_the_token_and_the_outcomes_are_the_logs() -> None:
    service = MemoryService({"bad.md": ["pending", "dead_lettered"], "old.md": ["superseded"], "gone.md": ["unknown"]})
    followed, published = send(
        service, raw("a.md"), raw("bad.md"), raw("old.md"), raw("gone.md", None), raw("b.md", None)
    )
    assert (published.records, published.token) == (5, "0:4@5f3a9c1e")
    assert followed.outcomes == {"indexed": 2, "dead_lettered": 1, "superseded": 1, ABSENT: 1}
    assert [(item.origin, item.message) for item in followed.refused] == [("m/bad.md", "It is dead_lettered.")]
    assert followed.absent == ["m/gone.md"]


def test_batches_are_bounded_and_hold_a_document_once_and_keep_the_order() -> None:
    service = MemoryService()
    send(service, *(raw(f"{number}.md") for number in range(BATCH_DOCUMENTS + 1)))
    assert service.batches == [BATCH_DOCUMENTS, 1]
    service = MemoryService()
    send(service, raw("a.md"), raw("a.md", b"# Later"), raw("a.md", None), raw("a.md", b"# Again"))
    assert [document_id for document_id, _ in service.log] == ["a.md"] * 4
    assert service.log[2] == ("a.md", None)


def test_a_member_that_is_refused_is_listed_and_one_that_could_not_be_taken_is_sent_again() -> None:
    service = MemoryService(refused={"large.md": [413], "later.md": [503]})
    followed, published = send(service, raw("a.md"), raw("large.md"), raw("later.md"))
    assert [document_id for document_id, _ in service.log] == ["a.md", "later.md"]
    assert published.records == 2
    assert [(item.origin, item.reason, item.message) for item in followed.refused] == [
        ("large.md", "too_large", "Too large.")
    ]


def test_a_worker_that_does_nothing_is_waited_for_only_so_long() -> None:
    service = MemoryService()
    service.reached = 0
    with pytest.raises(Failure, match="Nothing was indexed for 0 s"):
        send(service, raw("a.md"), raw("b.md"), patience=0.0)
    assert send(MemoryService(), raw("a.md"), patience=None)[0].outcomes == {}


def test_what_is_there_is_listed_with_the_marks_that_producers_sent() -> None:
    listed = ServicePublisher(MemoryService(), LimitSettings()).documents("m")
    assert [(each.document_id, each.mark) for each in listed] == [
        ("m.md", "folder:/docs-00000000"),
        ("own.md", None),
    ]


def test_delete_of_what_only_others_hold_sends_nothing() -> None:
    service = MemoryService()
    service.holding = {"setup.md": ["manual"], "both.md": ["default", "manual"], "here.md": ["default"]}
    publisher = ServicePublisher(service, LimitSettings(), sleep=lambda _seconds: None)
    loader = Loader(WorkerSettings(), publisher, wait=False, timeout_seconds=5, quiet=True)
    with pytest.raises(WrongSetting, match=r"in manual, so nothing .* --collection manual setup\.md"):
        loader.delete(None, ["here.md", "setup.md"])
    assert service.log == []
    loader.delete(None, ["here.md", "both.md", "unknown.md"])
    loader.delete("manual", ["setup.md"])
    assert [document_id for document_id, _ in service.log] == ["here.md", "both.md", "unknown.md", "setup.md"]
