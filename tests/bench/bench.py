"""`make bench`: Thalweg as a user runs it, measured on this machine; the last line is one JSON object.

Every figure that matters is a ratio of two things measured in this run: sentence-transformers' `model.encode` alone and
the default encoder alone over ingest, hybrid search over the plain vector search it contains.

Ingest is one `thalweg load` of about SEARCH_CHUNKS chunks into a running system that has indexed one other document:
from the first record sent until text and graph show all of them. Each text counts once, also where several chunks have
it, because the worker encodes it once. The default encoder alone encodes the same texts, every other one before the
ingest and the rest when everything is stopped, so that a machine that grows faster or slower meanwhile counts for
both. `model.encode`, the slower one, encodes the first MODEL_CHUNKS only, and is compared by rate.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from aiokafka import AIOKafkaProducer

from indexer.chunking.sentences import language_of
from indexer.chunking.splitter import ChunkingParameters, chunk
from indexer.document_pipeline import prepare
from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import Encoder
from indexer.embedding.model_files import PACKAGED_MODEL, model_folder
from indexer.generation_folders import current_generation
from indexer.parsing import parse
from schemas.events import DocumentUpsert
from schemas.settings import EmbeddingSettings
from tests.bench.corpora import BenchCorpus, markdown_sample, read_corpus
from tests.support.processes.installation import Installation, installation
from tests.support.waiting import wait_until

MODEL_CHUNKS = 3_000
SEARCH_CHUNKS = 10_000
FRESH_DOCUMENTS = 100
BETWEEN_FRESH_SECONDS = 0.9  # single documents on an idle system; a trickle is gathered
QUERIES = 200


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def spread(seconds: Sequence[float]) -> dict[str, float]:
    return {"p50": round(float(np.percentile(seconds, 50)), 4), "p95": round(float(np.percentile(seconds, 95)), 4)}


def embedding_texts(documents: Sequence[DocumentUpsert]) -> list[str]:
    parameters = ChunkingParameters()
    return [text for document in documents for text in prepare(document, parameters).embedding_texts]


def measured_documents(documents: Sequence[DocumentUpsert]) -> tuple[list[DocumentUpsert], list[str]]:
    """Documents of about SEARCH_CHUNKS chunks, and the texts to be encoded for them, each once."""
    taken: list[DocumentUpsert] = []
    texts: list[str] = []
    for document in documents:
        taken.append(document)
        texts += embedding_texts([document])
        if len(texts) >= SEARCH_CHUNKS:
            break
    return taken, list(dict.fromkeys(texts))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def parse_chunk_megabytes_per_second() -> float:
    """Markdown through the first two steps of `indexer.document_pipeline`, in CPU seconds; the best of five."""
    documents = markdown_sample()
    parameters = ChunkingParameters()
    size = sum(len(content) for _, content in documents)

    def run() -> float:
        began = time.process_time()
        for key, content in documents:
            parsed = parse(content, "text/markdown")
            chunk(key, parsed, parameters, language=language_of(parsed.text))
        return time.process_time() - began

    return size / 1e6 / min(run() for _ in range(5))


def model_encode_seconds(texts: Sequence[str]) -> float:
    """As the model runs by itself, float32 in torch on all cores; in a process whose memory ends with it."""
    program = (
        "import json, sys, time, torch, os\n"
        "from sentence_transformers import SentenceTransformer\n"
        "model = SentenceTransformer(sys.argv[1], device='cpu', local_files_only=True)\n"
        "texts = json.load(sys.stdin)\n"
        "torch.set_num_threads(os.cpu_count() or 1)\n"
        "model.encode(texts[:64])\n"
        "started = time.perf_counter()\n"
        "model.encode(texts, normalize_embeddings=True)\n"
        "print(time.perf_counter() - started)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(model_folder(PACKAGED_MODEL))],
        input=json.dumps(texts),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(ran.stdout)


def load(thalweg: Installation, documents: Sequence[DocumentUpsert], folder: Path) -> dict[str, Any]:
    """Through `thalweg load`, as a user would, until all is searchable."""
    lines = folder / f"{uuid.uuid4().hex}.jsonl"
    with lines.open("w") as file:
        for document in documents:
            envelope = {
                "id": document.key.document_id,
                "collection": document.key.collection,
                "title": document.title,
                "content": document.content.decode(),
                "content_type": document.content_type,
            }
            file.write(json.dumps(envelope) + "\n")
    return dict(thalweg.run_json("load", str(lines), "--patience", "600", timeout=3000))


def ingest(thalweg: Installation, documents: Sequence[DocumentUpsert], folder: Path) -> float:
    """Seconds from the first record published until text and graph show all of it."""
    loaded = load(thalweg, documents, folder)
    parameters = {"q": "what is there", "collection": documents[0].key.collection, "mode": "graph"}
    until_in_graph, answer = timed(
        lambda: httpx.get(f"{thalweg.url}/v1/search", params=parameters | {"after": loaded["token"]}, timeout=70)
    )
    answer.raise_for_status()
    return float(loaded["seconds"]) + until_in_graph


async def freshness(thalweg: Installation, mode: str) -> list[float]:
    """Seconds from `produce` to an answer that shows the document, on an idle system."""
    producer = AIOKafkaProducer(bootstrap_servers=thalweg.kafka, acks="all", linger_ms=0)
    await producer.start()
    seconds = []
    try:
        async with httpx.AsyncClient(timeout=70) as client:
            for _ in range(FRESH_DOCUMENTS):
                name = f"Zor{uuid.uuid4().hex[:10]}"
                content = f"# {name}\n\nThe island of {name} was first charted by sailors who looked for fresh water."
                started = time.perf_counter()
                sent = await producer.send_and_wait(
                    "thalweg.documents.v1",
                    content.encode(),
                    key=f"fresh/{name}".encode(),
                    headers=[("content-type", b"text/markdown")],
                )
                parameters: dict[str, Any] = {
                    "q": f"Who charted the island of {name}?",
                    "mode": mode,
                    "collection": "fresh",
                    "k": 1,
                    "after": f"{sent.partition}:{sent.offset}",
                }
                answer = await client.get(f"{thalweg.url}/v1/search", params=parameters)
                seconds.append(time.perf_counter() - started)
                hits = answer.json()["hits"]
                if not hits or hits[0]["document_id"] != name:
                    raise SystemExit(f"{mode}: {name} was called searchable and is not there")
                await asyncio.sleep(BETWEEN_FRESH_SECONDS)
    finally:
        await producer.stop()
    return seconds


def search_latency(thalweg: Installation, corpus: BenchCorpus, encoder: Encoder) -> tuple[list[float], list[float]]:
    """(hybrid search over HTTP, query embedding + plain LanceDB vector search in process), query by query in turn."""
    import lancedb

    generation = current_generation(thalweg.data_dir)
    if generation is None:
        raise SystemExit("the worker made no generation")
    chunks = lancedb.connect(generation.lance_dir).open_table("chunks")
    hybrid, plain = [], []
    with httpx.Client(timeout=70) as client:
        for number, query in enumerate((corpus.queries * QUERIES)[: QUERIES + 20]):
            parameters = {"q": query, "collection": corpus.collection, "k": 10, "cache": False}
            over_http, answer = timed(lambda p=parameters: client.get(f"{thalweg.url}/v1/search", params=p))
            answer.raise_for_status()
            in_process, _ = timed(
                lambda q=query: chunks.search(encoder.encode([q])[0]).distance_type("cosine").limit(10).to_arrow()
            )
            if number >= 20:  # the first warm both up
                hybrid.append(over_http)
                plain.append(in_process)
    return hybrid, plain


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def machine() -> dict[str, Any]:
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, help="a BEIR-style folder; without it, the shipped sample is repeated")
    corpus = read_corpus(parser.parse_args().corpus)
    say("reading Markdown ...")
    parse_chunk = parse_chunk_megabytes_per_second()
    say(f"preparing {corpus.name} ...")
    first, *others = corpus.documents
    documents, texts = measured_documents(others)

    by_model = texts[:MODEL_CHUNKS]
    say(f"encoding {len(by_model)} texts with sentence-transformers' model.encode alone ...")
    model_encode_rate = len(by_model) / model_encode_seconds(by_model)
    encoder = load_encoder(EmbeddingSettings())
    say(f"encoding every other one of {len(texts)} with {encoder.provider} alone ...")
    encoder.encode(texts[:64])
    encode_seconds, _ = timed(lambda: encoder.encode(texts[::2]))

    with tempfile.TemporaryDirectory() as folder, installation(Path(folder) / "data") as thalweg:
        load(thalweg, [first], Path(folder))  # wakes everything up
        say(f"ingesting {len(documents)} documents ...")
        ingest_seconds = ingest(thalweg, documents, Path(folder))
        wait_until(lambda: _idle(thalweg), "an idle system", 120)
        wait_until(lambda: _indexed(thalweg), "full indexes", 120)
        say("searching ...")
        hybrid, plain = search_latency(thalweg, corpus, encoder)
        say("writing and reading back ...")
        fresh_text = asyncio.run(freshness(thalweg, "keyword"))
        fresh_graph = asyncio.run(freshness(thalweg, "graph"))
        status = thalweg.run_json("status")
        memory = {part: thalweg.child(part).memory_info().rss for part in ("worker", "serve")}

    say("encoding the rest alone ...")
    encode_seconds += timed(lambda: encoder.encode(texts[1::2]))[0]
    encode_rate, ingest_rate = len(texts) / encode_seconds, len(texts) / ingest_seconds
    result = {
        "ingest_efficiency": round(ingest_rate / model_encode_rate, 3),
        "ingest_efficiency_same_encoder": round(ingest_rate / encode_rate, 3),
        "encoder_ratio": round(encode_rate / model_encode_rate, 3),
        "fresh_text_seconds": spread(fresh_text),
        "fresh_graph_seconds": spread(fresh_graph),
        "hybrid_seconds": spread(hybrid),
        "hybrid_ratio": round(float(np.median(hybrid) / np.median(plain)), 3),
        "worker_bytes": memory["worker"],
        "service_bytes": memory["serve"],
        "graph_bytes_per_edge": status["graph_bytes_per_edge"],
        "parse_chunk_megabytes_per_second": round(parse_chunk, 2),
        "encoder": encoder.provider,
        "encode_chunks_per_second": round(encode_rate, 1),
        "model_encode_chunks_per_second": round(model_encode_rate, 1),
        "ingest_chunks_per_second": round(ingest_rate, 1),
        "plain_vector_seconds": spread(plain),
        "chunks": status["counts"]["chunks"],
        "machine": machine(),
        "commit": commit(),
        "corpus": corpus.name,
    }
    print(json.dumps(result))


def _idle(thalweg: Installation) -> bool:
    status = thalweg.run_json("status")
    return bool(status["lag_records"] == 0)


def _indexed(thalweg: Installation) -> bool:
    """Whether next to all chunks are in the indexes."""
    import lancedb

    chunks = lancedb.connect(next(Path(thalweg.data_dir).glob("generations/*/lance"))).open_table("chunks")
    unknown = max(index.num_unindexed_rows or 0 for index in chunks.list_indices())
    return bool(unknown <= max(2_000, chunks.count_rows() // 20))


if __name__ == "__main__":
    main()
