"""The stores are rebuilt beside live traffic, switched atomically, switched back, and dropped."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from schemas.receipts import parse_token
from tests.support.processes.installation import Installation, installation
from tests.support.waiting import wait_until

OLD = {"THALWEG_EMBEDDING__PROVIDER": "hashing"}
NEW = {"THALWEG_EMBEDDING__PROVIDER": "onnx", "THALWEG_CHUNKING__CHUNK_CHARACTERS": "150"}
DOCUMENTS = 80
READERS = 3


def lines(first: int, last: int) -> str:
    """Documents that name themselves, as JSON lines."""
    made = (
        {
            "id": f"d{number}",
            "collection": "c",
            "title": f"Station {number}",
            "content": f"# Station {number}\n\nThe gauge of station {number} stands at the Thur near Andelfingen. "
            "It was read by hand every morning until the recorder came.\n\n"
            f"Station {number} reports to the office in Zurich, which keeps the rating curves of all gauges.",
        }
        for number in range(first, last)
    )
    return "\n".join(map(json.dumps, made))


class Readers:
    """Searches without pause from several threads; what went wrong, which generations answered, and who was shown an
    older state of the log than before."""

    def __init__(self, url: str, readers: int = READERS) -> None:
        self.readers = readers
        self.went_back: list[str] = []
        self.failures: list[str] = []
        self.generations: set[str] = set()
        self.answers = 0
        self._url = url
        self._stop = threading.Event()

    def read(self) -> None:
        shown: dict[int, int] = {}
        with httpx.Client(timeout=60) as client:
            while not self._stop.is_set():
                asked = {"q": "gauge of station 7", "k": 5, "cache": False}
                answer = client.get(f"{self._url}/v1/search", params=asked)
                if not answer.is_success or len(answer.json()["hits"]) != 5:
                    self.failures.append(answer.text[:300])
                    continue
                snapshot = answer.json()["snapshot"]
                reached = parse_token(snapshot["positions"]).positions
                if any(reached.get(number, -1) < offset for number, offset in shown.items()):
                    self.went_back.append(f"{snapshot['generation']} at {reached} after {shown}")
                shown = reached
                self.generations.add(snapshot["generation"])
                self.answers += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        threads = [threading.Thread(target=self.read) for _ in range(self.readers)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()


@pytest.fixture(scope="module")
def old_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made with the hashing encoder and the default chunks."""
    data_dir = tmp_path_factory.mktemp("generations") / "data"
    with installation(data_dir, **OLD) as thalweg:
        thalweg.run("load", "-", text_in=lines(0, DOCUMENTS))
    return data_dir


@pytest.mark.timeout(900)
def test_rebuild_with_another_encoder_is_switched_beside_reads(old_stores: Path) -> None:
    with installation(old_stores, **NEW) as thalweg:
        (first,) = thalweg.run_json("generations", "list")["generations"]
        assert first["state"] == "live"
        assert "thalweg rebuild" in thalweg.run("status").stdout
        readers = Readers(thalweg.url)
        with readers.reading():
            ordered = thalweg.run_json("rebuild", "--reason", "smaller chunks", "--no-wait")
            name = ordered["name"]
            assert "is being built" in thalweg.run("rebuild", check=False).stderr

            def build() -> psutil.Process:
                return thalweg.child(name)

            wait_until(lambda: shown(thalweg, name)["state"] == "building", "the build has begun", 60)
            killed = build()
            killed.kill()
            thalweg.run("load", "-", text_in=lines(DOCUMENTS, DOCUMENTS + 20))  # is searchable in the old one
            wait_until(lambda: shown(thalweg, name)["state"] == "live", "it was switched to", 180)
            wait_until(lambda: name in readers.generations, "readers see it", 60)
        assert (readers.failures, readers.went_back) == ([], [])
        assert readers.generations == {first["name"], name}
        new = shown(thalweg, name)
        assert new["pipeline"]["chunk_characters"] == 150
        assert new["pipeline"]["embedding_provider"] == "onnx"
        assert (new["comparison"]["missing_count"], new["comparison"]["unexpected_count"]) == (0, 0)
        assert new["comparison"]["new"]["documents"] == DOCUMENTS + 20
        assert thalweg.verify()["ok"]

        refused = thalweg.run("generations", "drop", name, "--yes", check=False)
        assert (refused.returncode, "is live: switch to another one first" in refused.stderr) == (1, True)
        assert "is live already" in thalweg.run("generations", "switch", name, check=False).stderr
        assert "there are g0001-" in thalweg.run("generations", "show", "g0009-aaaaaa", check=False).stderr

        thalweg.run("load", "-", text_in=lines(DOCUMENTS + 20, DOCUMENTS + 21))
        token = thalweg.run_json("load", "-", text_in=lines(DOCUMENTS + 21, DOCUMENTS + 22))["token"]
        back = thalweg.run_json("generations", "switch", first["name"])
        assert back["state"] == "live"
        wait_until(lambda: thalweg.search(q="x")["snapshot"]["generation"] == first["name"], "the old one answers", 60)
        answer = thalweg.search(q=f"Station {DOCUMENTS + 21}", after=token, wait_seconds=60, k=1)
        assert answer["snapshot"]["generation"] == first["name"]
        assert answer["hits"][0]["document_id"] == f"d{DOCUMENTS + 21}"

        thalweg.run("generations", "drop", name, "--yes")
        assert [each["name"] for each in thalweg.run_json("generations", "list")["generations"]] == [first["name"]]
        assert not (old_stores / "generations" / name).exists()


@pytest.mark.nightly  # of hosts and readers in memory: unit tests of `generations/host` and of the snapshot manager
@pytest.mark.timeout(900)
def test_switch_to_a_build_that_is_behind_waits_for_it(old_stores: Path) -> None:
    with installation(old_stores, **NEW) as thalweg:
        (first,) = [each for each in thalweg.run_json("generations", "list")["generations"] if each["state"] == "live"]
        name = thalweg.run_json("rebuild", "--no-switch")["name"]
        readers = Readers(thalweg.url, 8)
        build, worker_log = thalweg.child(name), thalweg.data_dir / "logs" / "worker.log"
        with readers.reading():
            build.suspend()  # as a busy machine does; it still counts as ready
            thalweg.run("load", "-", text_in=lines(1000, 1100))
            thalweg.run("delete", *(f"d{number}" for number in range(40)), "--collection", "c")
            asked = {"q": "gauge of station", "k": 3, "mode": "keyword"}
            first_page = thalweg.search(**asked)
            second_page = thalweg.search(**asked, cursor=first_page["next_cursor"])  # a snapshot in use stays
            thalweg.run("generations", "switch", name, "--no-wait")
            wait_until(lambda: "switch put off" in worker_log.read_text(), "the switch is put off", 60)
            assert name not in readers.generations
            build.resume()
            wait_until(lambda: name in readers.generations, "readers see it", 300)
        assert (readers.failures, readers.went_back) == ([], [])
        deleted = httpx.get(f"{thalweg.url}/v1/documents/d7", params={"collection": "c"}, timeout=60)
        assert deleted.status_code == 404
        third_page = thalweg.search(**asked, cursor=second_page["next_cursor"])
        assert third_page["snapshot"] == first_page["snapshot"]
        assert [hit["rank"] for hit in third_page["hits"]] == [7, 8, 9]
        thalweg.run("generations", "switch", first["name"])


def shown(thalweg: Installation, name: str) -> dict[str, Any]:
    return dict(httpx.get(f"{thalweg.url}/v1/generations/{name}", timeout=30).json())
