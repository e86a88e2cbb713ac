"""`python -m tests.bench.encoders FOLDER…`: what each encoder costs and what it is worth, on BEIR-style folders.

Each passage is encoded whole, each question is answered by cosine alone, so that nothing but the encoder differs.
The last line is one JSON object: passages a second, one question's seconds, nDCG@10 and recall@5 by folder.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from indexer.embedding.backends import load_encoder
from query_api.evaluation.datasets import read_folder
from query_api.evaluation.ranking_measures import measure_rankings
from schemas.settings import EmbeddingProvider, EmbeddingSettings

PROVIDERS: tuple[EmbeddingProvider, ...] = ("onnx-int8", "onnx", "sentence-transformers")


def measured(folder: Path, provider: EmbeddingProvider) -> dict[str, float]:
    encoder = load_encoder(EmbeddingSettings(provider=provider))
    collection = read_folder(folder)
    corpus, questions = collection.documents, collection.questions
    encoder.encode(["The first text takes longest."])
    started = time.perf_counter()
    passages = encoder.encode([f"{document.title or ''}. {document.text or ''}" for document in corpus])
    encoded = time.perf_counter()
    asked = np.concatenate([encoder.encode_queries([question.text]) for question in questions])
    answered = time.perf_counter()
    best = np.argsort(-(asked @ passages.T), axis=1, kind="stable")[:, :10]
    ranked = {asking.id: [corpus[at].id for at in order] for asking, order in zip(questions, best, strict=True)}
    values = measure_rankings(ranked, collection.judgements, k=10)
    return {
        "passages_per_second": round(len(corpus) / (encoded - started), 1),
        "question_seconds": round((answered - encoded) / len(questions), 5),
        "ndcg_10": round(float(np.mean(values["nDCG@10"])) * 100, 2),
        "recall_5": round(float(np.mean(values["R@5"])) * 100, 2),
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
