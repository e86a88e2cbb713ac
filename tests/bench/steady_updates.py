"""Many small updates for a long time: how memory, files and bytes on disk grow, beside a search every second.

`python -m tests.bench.steady_updates --minutes 30` starts everything as a user does and replaces 300 documents in turn,
ten a second. Every ten seconds it writes a row of figures to `--csv`. The last line of its output is one JSON object
with the figures by minute, and `worker_growth`: the worker's memory at the end over that after a third of the time.
`worker` and `serve` are resident sets in bytes; `…_private` leave out what the processes share with others.
"""

import argparse
import asyncio
import csv
import json
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from aiokafka import AIOKafkaProducer

from schemas.topics import TopicNames
from tests.bench.bench import commit, machine, say, spread
from tests.support.processes.installation import Installation, installation

DOCUMENTS = 300
SAMPLE_SECONDS = 10.0
PEOPLE = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Mary Somerville", "Charles Babbage", "Sophie Germain"]
PLACES = ["Lyon", "Genoa", "Bergen", "Porto", "Riga", "Utrecht", "Basel", "Gdansk"]
WORDS = ["harbour", "engine", "ledger", "valley", "signal", "copper", "winter", "archive", "river", "bridge", "market"]


def text(number: int, turn: int) -> str:
    """A document of 1 to 2 kB with a few names; another one at each turn."""
    random_words = random.Random(f"{number}-{turn}")
    lines = [f"# Report {number}", ""]
    for _ in range(random_words.randint(3, 5)):
        person, place = random_words.choice(PEOPLE), random_words.choice(PLACES)
        words = " ".join(random_words.choices(WORDS, k=40))
        lines += [f"{person} travelled to {place} and wrote of {words}, in revision {turn}.", ""]
    return "\n".join(lines)


def files_by_folder(data_dir: Path) -> Counter[str]:
    """Files in the stores by their folder: the tables one by one, the broker's log apart."""
    found: Counter[str] = Counter()
    for folder, _, names in os.walk(data_dir):
        parts = Path(folder).relative_to(data_dir).parts
        tables = [part for part in parts if part.endswith(".lance")]
        found[tables[0] if tables else parts[0] if parts else "."] += len(names)
    return found


def bytes_on_disk(data_dir: Path) -> int:
    total = 0
    for folder, _, names in os.walk(data_dir):
        for name in names:
            with suppress(FileNotFoundError):
                total += Path(folder, name).stat().st_size
    return total


def sample(thalweg: Installation, began: float) -> dict[str, Any]:
    worker, serve = thalweg.child("worker"), thalweg.child("serve")
    files = files_by_folder(thalweg.data_dir)
    return {
        "seconds": round(time.monotonic() - began),
        "files": sum(files.values()),
        **{f"files_{name}": count for name, count in sorted(files.items())},
        "bytes": bytes_on_disk(thalweg.data_dir),
        "worker": worker.memory_info().rss,
        "worker_private": worker.memory_full_info().uss,
        "worker_cpu": round(sum(worker.cpu_times()[:2]), 1),
        "serve": serve.memory_info().rss,
        "serve_private": serve.memory_full_info().uss,
        "serve_cpu": round(sum(serve.cpu_times()[:2]), 1),
        "kafka": thalweg.child("kafka.Kafka").memory_info().rss,
    }


class Load:
    """Replaces the documents one after the other at a rate, and searches now and then for what it wrote."""

    def __init__(self, thalweg: Installation, rate: float) -> None:
        self._thalweg = thalweg
        self._rate = rate
        self.updates = 0
        self.fresh_seconds: list[float] = []
        self.last_offsets: dict[int, int] = {}

    async def update(self, producer: AIOKafkaProducer) -> None:
        began = time.monotonic()
        first = self.updates
        while True:
            turn, number = divmod(self.updates, DOCUMENTS)
            sent = await producer.send_and_wait(
                TopicNames("thalweg.").documents,
                text(number, turn).encode(),
                key=f"steady/{number}".encode(),
                headers=[("content-type", b"text/markdown")],
            )
            self.last_offsets[sent.partition] = sent.offset
            self.updates += 1
            await asyncio.sleep(max(0.0, began + (self.updates - first) / self._rate - time.monotonic()))

    async def search(self) -> None:
        """Every second one search that waits for the newest update."""
        async with httpx.AsyncClient(timeout=70) as client:
            number = 0
            while True:
                number += 1
                parameters: dict[str, Any] = {"q": f"Who went to {PLACES[number % len(PLACES)]} in winter? {number}"}
                if self.last_offsets:
                    parameters["after"] = ",".join(f"{part}:{offset}" for part, offset in self.last_offsets.items())
                started = time.monotonic()
                (await client.get(f"{self._thalweg.url}/v1/search", params=parameters)).raise_for_status()
                self.fresh_seconds.append(time.monotonic() - started)
                await asyncio.sleep(max(0.0, started + 1.0 - time.monotonic()))


async def run(thalweg: Installation, minutes: float, rate: float, table: Path) -> tuple[list[dict[str, Any]], Load]:
    producer = AIOKafkaProducer(bootstrap_servers=thalweg.kafka, acks="all", linger_ms=0)
    await producer.start()
    load = Load(thalweg, rate)
    work = [asyncio.create_task(load.update(producer)), asyncio.create_task(load.search())]
    samples: list[dict[str, Any]] = []
    began = time.monotonic()
    try:
        with table.open("w", newline="") as file:
            while time.monotonic() < began + minutes * 60:
                await asyncio.wait(work, timeout=SAMPLE_SECONDS, return_when=asyncio.FIRST_EXCEPTION)
                for task in work:
                    if task.done():
                        task.result()
                samples.append(await asyncio.to_thread(sample, thalweg, began))
                write_row(file, samples)
    finally:
        for task in work:
            task.cancel()
        await asyncio.wait(work)
        await producer.stop()
    return samples, load


def write_row(file: Any, samples: Sequence[dict[str, Any]]) -> None:
    rows = csv.DictWriter(file, list(samples[0]), restval=0, extrasaction="ignore")
    if len(samples) == 1:
        rows.writeheader()
    rows.writerow(samples[-1])
    file.flush()


def by_minute(samples: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The last figures of each minute."""
    return {row["seconds"] // 60: row for row in samples}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0)
    arguments.add_argument("--rate", type=float, default=10.0, help="updates a second")
    arguments.add_argument("--csv", type=Path, default=Path("steady_updates.csv"), help="a row every ten seconds")
    arguments.add_argument("--data-dir", type=Path, help="kept afterwards; must not exist")
    arguments.add_argument("--encoder", default="auto", help="THALWEG_EMBEDDING__PROVIDER; `hashing` spares processor")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data_dir = chosen.data_dir or Path(folder) / "data"
        with installation(data_dir, THALWEG_EMBEDDING__PROVIDER=chosen.encoder) as thalweg:
            say(f"updating {DOCUMENTS} documents, {chosen.rate:g} a second, for {chosen.minutes:g} minutes ...")
            samples, load = asyncio.run(run(thalweg, chosen.minutes, chosen.rate, chosen.csv))
            status = thalweg.run_json("status")
    third = min(samples, key=lambda row: abs(row["seconds"] - chosen.minutes * 20))
    result = {
        "updates": load.updates,
        "updates_a_second": round(load.updates / samples[-1]["seconds"], 2),
        "files_most": max(row["files"] for row in samples),
        "files_last": samples[-1]["files"],
        "bytes_last": samples[-1]["bytes"],
        "worker_growth": round(samples[-1]["worker"] / third["worker"], 3),
        "serve_growth": round(samples[-1]["serve"] / third["serve"], 3),
        "fresh_search_seconds": spread(load.fresh_seconds),
        "searches": len(load.fresh_seconds),
        "lag_records": status["lag_records"],
        "minutes": by_minute(samples),
        "encoder": chosen.encoder,
        "machine": machine(),
        "commit": commit(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
