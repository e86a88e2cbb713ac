"""`make demo`: the main job on a real Kafka, with real documents, in the commands a user would type."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
from kafka import KafkaConsumer
from rich.console import Console

from indexer.embedding.model_files import PACKAGED_MODEL, packaged_model
from indexer.runtime.user_cache import user_cache_dir
from schemas.errors import plain_failures
from streams.embedded_kafka.jars import JarProgress, ensure_jars

SAMPLE = Path(__file__).parent / "samples" / "peps.jsonl.xz"
READY_SECONDS = 180.0
COLLECTION = "peps"

console = Console(highlight=False)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Demo:
    """A `thalweg up` of its own, in a folder that goes away with it."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.port, self.kafka_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = data_dir.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        arguments = ["up", "--data-dir", str(self.data_dir), "--port", str(self.port)]
        arguments += ["--kafka-port", str(self.kafka_port)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "thalweg", *arguments], stdout=log, stderr=subprocess.STDOUT
            )
        with console.status("starting Kafka, the worker and the query service ..."):
            deadline = time.monotonic() + READY_SECONDS
            while not self._is_ready():
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"thalweg up did not get ready:\n{self.log.read_text()}")
                time.sleep(0.2)

    def _is_ready(self) -> bool:
        try:
            ready = httpx.get(f"{self.url}/readyz", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False
        return ready and "ready" in self.log.read_text()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def type(self, *arguments: str) -> None:
        """Show a command, then run it as a user would."""
        shown = " ".join(f"'{word}'" if " " in word else word for word in arguments)
        console.print(f"\n[bold]$ thalweg {shown}[/bold]")
        subprocess.run([sys.executable, "-m", "thalweg", *arguments, "--data-dir", str(self.data_dir)], check=True)

    def json(self, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "thalweg", *arguments, "--json", "--data-dir", str(self.data_dir)],
            check=True,
            capture_output=True,
        )
        return json.loads(done.stdout)


def retrieval_from_topic(servers: str, retrieval_id: str) -> dict[str, Any]:
    """Read `thalweg.provenance.v1` from its beginning until the retrieval comes."""
    topic = "thalweg.provenance.v1"
    consumer = KafkaConsumer(
        topic, bootstrap_servers=servers, group_id=None, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    )
    try:
        for message in consumer:
            if message.key == retrieval_id.encode():
                return {"partition": message.partition, "offset": message.offset} | json.loads(message.value)
    finally:
        consumer.close()
    raise SystemExit(f"{topic} does not hold the retrieval {retrieval_id}")


def download() -> float:
    """Kafka's jars and the model, once into the user's cache; the seconds it took."""
    began = time.monotonic()
    with closing(JarProgress()) as progress:
        ensure_jars(user_cache_dir(os.environ, "kafka"), progress)
    with console.status(f"downloading the model {PACKAGED_MODEL} (once, about 84 MB) ..."):
        packaged_model()
    return time.monotonic() - began


def heading(text: str) -> None:
    console.print()
    console.rule(text, align="left")


@plain_failures()
def main() -> None:
    downloading_seconds = download()
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="thalweg-demo-"))
    demo = Demo(folder / "data")
    try:
        heading("1  Start")
        demo.start()
        console.print(
            f"ready after {time.monotonic() - began:.0f} s: Apache Kafka, worker, query service at {demo.url}"
        )

        heading("2  Publish a real stream: a year of changes to Python Enhancement Proposals")
        before = time.monotonic()
        demo.type("load", os.path.relpath(SAMPLE))
        loaded_seconds = time.monotonic() - before
        demo.type("status")

        heading("3  Search, streamed as it is found")
        demo.type("search", "How does free threading change the lock that protects the interpreter?", "-k", "3")
        demo.type("search", "deprecation of soft keywords", "-k", "3", "--mode", "keyword")
        console.print(
            "\nThe next one names one proposal and asks of another. Each hit shows the way to it, and what says so:"
        )
        question = "Who wrote the policy that PEP 839 refers to for soft deprecation?"
        demo.type("search", question, "-k", "3", "--mode", "graph")
        console.print("\nAn answer is sentences of documents, word for word, or why there is none:")
        demo.type("ask", "What does PEP 661 propose?")
        demo.type("ask", "Which team won the rugby world cup?")

        heading("4  Where it came from: the retrieval, read back from its topic")
        found = demo.json("search", "sentinel values as default arguments", "-k", "3", "--collection", COLLECTION)
        running = json.loads((demo.data_dir / "running.json").read_bytes())
        record = retrieval_from_topic(running["kafka"], found["retrieval_id"])
        console.print(f"thalweg.provenance.v1 {record['partition']}:{record['offset']}  {record['query']!r}")
        for hit in record["hits"]:
            source = hit["source"]
            position = f"{source['topic']} {source['partition']}:{source['offset']}"
            console.print(f"  {hit['rank']}  {hit['document_id']:<16} score {hit['score']:.4f}  from {position}")

        heading("5  Delete, and the hit vanishes")
        victim = found["hits"][0]["document_id"]
        token = demo.json("delete", victim, "--collection", COLLECTION, "--yes")["token"]
        again = demo.json("search", found["query"], "-k", "3", "--collection", COLLECTION, "--after", token)
        left = [hit["document_id"] for hit in again["hits"]]
        console.print(f"deleted {victim} (token {token}); the same search now finds {', '.join(left)}")
        if victim in left:
            raise SystemExit(f"{victim} is still found")
        demo.type("verify")

        counts = demo.json("status")["counts"]
        heading("Done")
        console.print(
            f"{counts['documents']} documents, {counts['passages']} passages, {counts['chunks']} chunks; "
            f"the stream was searchable after {loaded_seconds:.0f} s; the whole demo took "
            f"{time.monotonic() - began:.0f} s, after {downloading_seconds:.0f} s for downloads.\n\n"
            "Next, in two terminals:\n"
            "  .venv/bin/thalweg up\n"
            "  .venv/bin/thalweg load README.md ARCHITECTURE.md && .venv/bin/thalweg search 'what is a token'\n"
            "and in a browser the web console: http://127.0.0.1:8420"
        )
    finally:
        with console.status("stopping ..."):
            demo.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
