"""People who search meanwhile: at once, page by page, by streams that are read slowly or left."""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.acceptance.torture.stream import COLLECTION, STATIONS

EVENTS = {"Accept": "text/event-stream"}
PAUSE_SECONDS = 0.2
PAGE_SECONDS = 1.5  # between two pages, and two pieces of a slow stream
SHOWN = 5


class Readers:
    """What went wrong for them is in `failures`; a search that was answered is none, whatever it found."""

    def __init__(self, url: str) -> None:
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self.generations: set[str] = set()
        self._url = url
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for read in (self._search, self._page, self._stream_slowly, self._leave_streams):
            self._threads.append(threading.Thread(target=self._again, args=(read,), daemon=True))
            self._threads[-1].start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _again(self, read: Callable[[httpx.Client, int], None]) -> None:
        turn = 0
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as http:
            while not self._stop.is_set():
                turn += 1
                try:
                    read(http, turn)
                except (httpx.HTTPError, OSError) as error:
                    self._fail(f"{read.__name__}: {type(error).__name__}: {error}")
                self._stop.wait(PAUSE_SECONDS)

    def _fail(self, what: str) -> None:
        self.failures.append(f"{time.strftime('%H:%M:%S')} {what}"[:400])

    def _search(self, http: httpx.Client, turn: int) -> None:
        self._hits(http, {"q": f"gauge of station d{turn % STATIONS}", "k": 5})

    def _page(self, http: httpx.Client, turn: int) -> None:
        """Three pages of one answer, all from the snapshot of the first."""
        asked: dict[str, Any] = {"q": f"who wrote to Basel in {turn}", "k": 4}
        answer = self._hits(http, asked)
        for _ in range(2):
            if answer is None or not (cursor := answer.get("next_cursor")):
                return
            self._stop.wait(PAGE_SECONDS)
            before = answer["snapshot"]
            answer = self._hits(http, asked | {"cursor": cursor}, before["generation"])
            if answer is not None and answer["snapshot"]["table_versions"] != before["table_versions"]:
                self._fail(f"a page is of another snapshot: {answer['snapshot']} after {before}")

    def _hits(self, http: httpx.Client, asked: dict[str, Any], generation: str = "") -> dict[str, Any] | None:
        """`generation` is the one that the cursor is of: it ends with that one."""
        answer = http.get("/v1/search", params={"collection": COLLECTION, "cache": False} | asked)
        if answer.status_code == 410 and generation:
            now = self._hits(http, {name: value for name, value in asked.items() if name != "cursor"})
            if now is not None and now["snapshot"]["generation"] != generation:
                return None
        if not answer.is_success:
            self._fail(f"{asked} was answered with {answer.status_code}: {answer.text}")
            return None
        found: dict[str, Any] = answer.json()
        self.answers["searches"] += 1
        self.generations.add(found["snapshot"]["generation"])
        if found.get("failed_channels"):
            self._fail(f"{asked} was answered without {found['failed_channels']}")
        for hit in found["hits"]:
            if not hit["title"].startswith(f"{COLLECTION}/{hit['document_id']} ") or not is_whole(hit):
                self._fail(f"a hit is of two documents: {hit['document_id']}, {hit['title']!r}, {hit['text']!r}")
        return found

    def _stream_slowly(self, http: httpx.Client, turn: int) -> None:
        asked = {"q": f"gauge near {turn}", "collection": COLLECTION, "k": 10, "cache": False}
        with http.stream("GET", "/v1/search", params=asked, headers=EVENTS) as answer:
            received = ""
            for piece in answer.iter_text(chunk_size=2_048):
                received += piece
                if self._stop.wait(PAUSE_SECONDS):
                    return
        if "event: done" not in received:
            self._fail(f"a stream that was read slowly ended with {received[-200:]!r}")
        self.answers["streams"] += 1

    def _leave_streams(self, _http: httpx.Client, turn: int) -> None:
        """Begun, and never read or closed half-way, in turn."""
        address = urlsplit(self._url)
        with contextlib.closing(socket.create_connection((address.hostname, address.port), timeout=10)) as connection:
            request = f"GET /v1/search?q=left+{turn}&cache=false HTTP/1.1\r\nHost: {address.netloc}\r\n"
            connection.sendall(f"{request}Accept: text/event-stream\r\n\r\n".encode())
            if turn % 2:
                connection.recv(64)
            else:
                self._stop.wait(PAGE_SECONDS)
        self.answers["streams left"] += 1


def is_whole(hit: dict[str, Any]) -> bool:
    """Whether the text names the station that the hit is of, where it names any."""
    words = hit["text"].split()
    named = [after for word, after in pairwise(words) if word == "Station"]
    return all(name.strip(".,") == hit["document_id"] for name in named)
