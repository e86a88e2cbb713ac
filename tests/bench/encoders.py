"""`python -m tests.bench.encoders FOLDER…`: what each encoder costs and what it is worth, on BEIR-style folders.

Each passage is encoded whole, each question is answered by cosine alone, so that nothing but the encoder differs.
The last line is one JSON object: passages a second, one question's seconds, nDCG@10 and recall@5 by folder.
"""

import argparse
import csv
import gzip
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from indexer.embedding import load_encoder
from schemas.settings import EmbeddingProvider, EmbeddingSettings

PROVIDERS: tuple[EmbeddingProvider, ...] = ("onnx-int8", "onnx", "sentence-transformers")
Judged = dict[str, dict[str, int]]


def rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def judgements(path: Path) -> Judged:
    judged: Judged = {}
    with path.open(newline="") as file:
        for question, passage, grade in list(csv.reader(file, delimiter="\t"))[1:]:
            judged.setdefault(question, {})[passage] = int(grade)
    return judged


def ndcg(ranked: Sequence[str], judged: Mapping[str, int], k: int = 10) -> float:
    """Järvelin, Kekäläinen 2002, with gain = grade."""
    gained = sum(judged.get(passage, 0) / math.log2(rank + 2) for rank, passage in enumerate(ranked[:k]))
    ideal = sum(grade / math.log2(rank + 2) for rank, grade in enumerate(sorted(judged.values(), reverse=True)[:k]))
    return gained / ideal if ideal else 0.0


def recall(ranked: Sequence[str], judged: Mapping[str, int], k: int = 5) -> float:
    wanted = {passage for passage, grade in judged.items() if grade > 0}
    return len(wanted & set(ranked[:k])) / len(wanted) if wanted else 0.0


def measured(folder: Path, provider: EmbeddingProvider) -> dict[str, float]:
    encoder = load_encoder(EmbeddingSettings(provider=provider))
    corpus, judged = rows(folder / "corpus.jsonl.gz"), judgements(folder / "qrels" / "dev.tsv")
    questions = [row for row in rows(folder / "queries.jsonl.gz") if row["_id"] in judged]
    encoder.encode(["The first text takes longest."])
    started = time.perf_counter()
    passages = encoder.encode([f"{row['title']}. {row['text']}" for row in corpus])
    encoded = time.perf_counter()
    asked = np.concatenate([encoder.encode([row["text"]]) for row in questions])
    answered = time.perf_counter()
    names = [row["_id"] for row in corpus]
    best = np.argsort(-(asked @ passages.T), axis=1, kind="stable")[:, :10]
    ranked = {row["_id"]: [names[at] for at in order] for row, order in zip(questions, best, strict=True)}
    return {
        "passages_per_second": round(len(corpus) / (encoded - started), 1),
        "question_seconds": round((answered - encoded) / len(questions), 5),
        "ndcg_10": round(float(np.mean([ndcg(ranked[name], judged[name]) for name in ranked])) * 100, 2),
        "recall_5": round(float(np.mean([recall(ranked[name], judged[name]) for name in ranked])) * 100, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--provider", action="append", choices=PROVIDERS)
    arguments = parser.parse_args()
    result = {
        folder.name: {provider: measured(folder, provider) for provider in arguments.provider or PROVIDERS}
        for folder in arguments.folders
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
