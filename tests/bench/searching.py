"""A query service on stores of its own, asked over HTTP; and LanceDB asked the same in process."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import lancedb
import psutil
from lancedb.rerankers import RRFReranker

from indexer.embedding.encoder import Encoder
from indexer.generation_folders import Generation
from tests.bench.bench import timed
from tests.support.processes.installation import free_port
from tests.support.waiting import wait_until

WARMING = 10
K = 10
CONCURRENT_SECONDS = 12.0


@dataclass
class Served:
    """A running service."""

    process: subprocess.Popen[bytes]
    url: str
    ready_seconds: float = 0.0

    @classmethod
    @contextmanager
    def started(cls, data_dir: Path, port: int) -> "Iterator[Served]":
        port = port or free_port()
        command = ["-m", "thalweg", "serve", "--data-dir", str(data_dir), "--port", str(port), "--log-level", "ERROR"]
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *command], stdout=subprocess.DEVNULL, env=os.environ | {"HF_HUB_OFFLINE": "1"}
        )
        served = cls(process, f"http://127.0.0.1:{port}")
        try:
            wait_until(served.searches, "the service searches", 180)
            served.ready_seconds = time.perf_counter() - began
            yield served
        finally:
            process.terminate()
            process.wait(60)

    def searches(self) -> bool:
        if self.process.poll() is not None:
            raise SystemExit(f"`thalweg serve` ended with {self.process.returncode}")
        try:
            return httpx.get(f"{self.url}/v1/search", params={"q": "ready", "k": 1}, timeout=60).status_code == 200
        except httpx.HTTPError:
            return False

    def resident_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)


class LanceHybrid:
    """LanceDB's own vector and full text search of the chunks, fused by its own RRF."""

    def __init__(self, generation: Generation, collection: str) -> None:
        self._table = lancedb.connect(generation.lance_dir).open_table("chunks")
        self.collection = collection
        self.chunks = self._table.count_rows()
        if not any(index.index_type == "FTS" for index in self._table.list_indices()):
            self._table.create_fts_index("text")
        self._reranker = RRFReranker()

    def search(self, query: str, encoder: Encoder) -> int:
        """How many hits it gave, with their texts."""
        found = (
            self._table.search(query_type="hybrid", vector_column_name="vector")
            .vector(encoder.encode([query])[0])
            .text(query)
            .distance_type("cosine")
            .select(["id", "passage_id", "document_id", "text"])
            .rerank(self._reranker)
            .limit(K)
            .to_arrow()
        )
        return int(found.num_rows)


def in_turn(
    served: Served, plain: LanceHybrid, queries: Sequence[str], encoder: Encoder
) -> tuple[list[float], list[float]]:
    """(seconds of a hybrid search over HTTP, of LanceDB's in process with the question encoded), query by query."""
    hybrid, lance = [], []
    with httpx.Client(timeout=70) as client:
        for number, query in enumerate([*queries[:WARMING], *queries]):
            over_http, answer = timed(lambda q=query: client.get(f"{served.url}/v1/search", params=_asked(q)))
            answer.raise_for_status()
            in_process, hits = timed(lambda q=query: plain.search(q, encoder))
            if not hits or not answer.json()["hits"]:
                raise SystemExit(f"no hits for {query!r}")
            if number >= WARMING:
                hybrid.append(over_http)
                lance.append(in_process)
    return hybrid, lance


def first_and_last_hits(served: Served, queries: Sequence[str]) -> tuple[list[float], list[float]]:
    """Seconds from the request to the first `hit` frame of a stream, and to the last."""
    firsts, lasts = [], []
    with httpx.Client(timeout=70, headers={"accept": "text/event-stream"}) as client:
        for query in queries:
            began = time.perf_counter()
            times = []
            with client.stream("GET", f"{served.url}/v1/search", params=_asked(query)) as answer:
                times = [time.perf_counter() - began for line in answer.iter_lines() if line == "event: hit"]
            firsts.append(times[0])
            lasts.append(times[-1])
    return firsts, lasts


def concurrent(served: Served, queries: Sequence[str], searchers: int) -> tuple[float, list[int]]:
    """(answers a second of so many searchers that each ask one question after the other, answers of each)."""
    end = time.perf_counter() + CONCURRENT_SECONDS

    def ask(first: int) -> int:
        answered = 0
        with httpx.Client(timeout=70) as client:
            while time.perf_counter() < end:
                query = queries[(first * 17 + answered) % len(queries)]
                client.get(f"{served.url}/v1/search", params=_asked(query)).raise_for_status()
                answered += 1
        return answered

    with ThreadPoolExecutor(searchers) as threads:
        shares = list(threads.map(ask, range(searchers)))
    return sum(shares) / CONCURRENT_SECONDS, shares


def _asked(query: str) -> dict[str, str | int | bool]:
    return {"q": query, "k": K, "cache": False}
