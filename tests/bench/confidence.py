"""Fits hits' confidence anew: `python -m tests.bench.confidence --data-dir DIR… [--alike A,B] [--ways W,W] FOLDER…`.

The folders are labelled collections as `thalweg evaluate` takes them, and each data directory is one into which it
has loaded some of them; they are opened to read. Every question is searched in process, in every way of asking; the ten
hits of each are labelled by the judgements, and a logistic regression is fitted to what the engine knew of them, every
hit counting the same. A third as many questions are strangers: asked of a collection of another subject, where nothing
answers them. Without these a best hit would look likely however bad it is, for judged questions all have an answer.
Each collection is left out in turn, to see what the numbers are worth for one they
were not fitted on. `--ways` fits only some of the ways, and keeps the numbers of the others. Writes
`query_api/searching/results/confidence.toml` and prints the errors; the last line is JSON.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import EncoderUnavailable
from indexer.generations import current_generation, read_manifest
from indexer.read.vectors import VectorReader
from query_api.evaluation.corpus import corpus_of
from query_api.judging.figures.calibration import calibrate
from query_api.judging.labelled import Question, read_folder, spread_out
from query_api.reading.snapshot import QueryEncoder, Snapshot
from query_api.reading.text_cache import CachedText, TextCache
from query_api.searching.engine import tables_of
from query_api.searching.loading import LoadedEngine
from query_api.searching.results import confidence
from query_api.searching.results.confidence import FEATURES, WITHOUT_MEANING, FittedWay, fitted_judge
from query_api.searching.search import search
from query_api.searching.steps import SearchBudgets, SearchSettings
from schemas.api import Hit
from schemas.search_request import Mode, SearchRequest
from schemas.settings import EmbeddingSettings

K = 10
STRANGERS = 1 / 3  # for each question of a collection
RIDGE = 1e-3
STEPS = 50
PATIENT = SearchBudgets(30, 30, 30, 30, 30, 30)
WAYS: Mapping[str, tuple[Mode, bool]] = {
    "hybrid": ("hybrid", True),
    f"hybrid_{WITHOUT_MEANING}": ("hybrid", False),
    "vector": ("vector", True),
    "keyword": ("keyword", True),
    "graph": ("graph", True),
    f"graph_{WITHOUT_MEANING}": ("graph", False),
    "rerank": ("rerank", True),
}


class Labelled(NamedTuple):
    """Hits of one collection: (n_hits, len(FEATURES)), and (n_hits,) 1 for a relevant one, else 0."""

    features: NDArray[np.float64]
    relevant: NDArray[np.float64]

    @classmethod
    def joined(cls, parts: Sequence["Labelled"]) -> "Labelled":
        return cls(np.concatenate([each.features for each in parts]), np.concatenate([each.relevant for each in parts]))


@dataclass
class RecordingJudge:
    """Keeps what it is asked in one way, and has no opinion."""

    way: str
    features: NDArray[np.float64]

    def probabilities(self, way: str, features: NDArray[np.float64]) -> None:
        if way == self.way:
            self.features = features


class RememberingEncoder:
    """Embeds each question once, whatever the number of ways it is asked in."""

    def __init__(self, encoder: QueryEncoder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        for text in texts:
            if text not in self._known:
                self._known[text] = self._encoder.encode_queries([text])[0]
        return np.stack([self._known[text] for text in texts])


class AbsentEncoder:
    """One that is away: what the service goes on with then is a way of asking too."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise EncoderUnavailable(f"There is no encoder for {len(texts)} texts.")


class Served(NamedTuple):
    """A data directory, opened."""

    snapshot: Snapshot
    encoder: QueryEncoder
    model: str
    holds: Callable[[str], bool]


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def opened(data_dir: Path) -> Served:
    generation = current_generation(data_dir)
    if generation is None:
        raise SystemExit(f"{data_dir} holds no generation; load the folders with `thalweg evaluate` first.")
    engine = LoadedEngine()
    reader = VectorReader.open(generation, most_resident_chunks=10**9)
    graph = engine.build_graph(generation, engine.newest_graph_file(generation))
    snapshot = engine.snapshot(generation, reader, graph, "documents")
    encoder = RememberingEncoder(engine.load_encoder(EmbeddingSettings(), data_dir))
    cached = replace(snapshot, text=CachedText(snapshot.text, TextCache(100_000)))
    return Served(cached, encoder, read_manifest(generation).embedding_model, tables_of(snapshot).holds)


async def hits_of(
    questions: Sequence[Question],
    judgements: Mapping[str, Mapping[str, int]],
    collection: str,
    served: Served,
    way: str,
    threads: ThreadPoolExecutor,
) -> Labelled:
    """The first hits of every question, asked in one way; a question without judgements is a stranger."""
    mode, meaning = WAYS[way]
    encoder = served.encoder if meaning else AbsentEncoder()
    parts = [Labelled(np.zeros((0, len(FEATURES))), np.zeros(0))]
    for question in questions:
        judge = RecordingJudge(way, np.zeros((0, len(FEATURES))))
        request = SearchRequest(q=question.text, k=K, mode=mode, group="document", collection=collection)
        settings = SearchSettings(budgets=PATIENT, judge=judge)
        answer = search(request, "r", served.snapshot, encoder, threads, settings)
        hits = [part async for part in answer if isinstance(part, Hit)]
        grades = judgements.get(question.id, {})
        relevant = np.array([float(grades.get(hit.document_id, 0) > 0) for hit in hits])
        rows = [hit.rank - 1 for hit in hits]
        if len(judge.features):
            parts.append(Labelled(judge.features[rows], relevant))
    return Labelled.joined(parts)


def fit(labelled: Labelled) -> FittedWay:
    """Logistic regression by Newton's method, with a ridge on standardised features; numbers for the features as they
    are. A feature that never varies gets 0."""
    mean, spread = labelled.features.mean(axis=0), labelled.features.std(axis=0)
    varies = spread > 1e-9
    scaled = np.where(varies, (labelled.features - mean) / np.where(varies, spread, 1.0), 0.0)
    design = np.column_stack([np.ones(len(scaled)), scaled])
    ridge = np.eye(design.shape[1]) * RIDGE * len(scaled)
    ridge[0, 0] = 0.0
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-design @ weights))
        curvature = design.T @ (design * (likely * (1 - likely))[:, None]) + ridge
        weights -= np.linalg.solve(curvature, design.T @ (likely - labelled.relevant) + ridge @ weights)
    slopes = np.where(varies, weights[1:] / np.where(varies, spread, 1.0), 0.0)
    return FittedWay(
        round(float(weights[0] - slopes @ mean), 4),
        {name: round(float(slope), 4) for name, slope in zip(FEATURES, slopes, strict=True)},
    )


def expected_error(likely: NDArray[np.float64], relevant: NDArray[np.float64]) -> float:
    found = calibrate(list(zip(likely.tolist(), (relevant > 0).tolist(), strict=True)))
    return float("nan") if found is None else round(found.expected_error, 4)


def left_out(own: Mapping[str, Labelled], strangers: Mapping[str, Labelled]) -> dict[str, float]:
    """The expected calibration error of the questions of each collection by what the others teach, and of all these
    questions together; what the first hits of strangers are told to be, on the mean."""
    errors: dict[str, float] = {}
    told: list[NDArray[np.float64]] = []
    told_strangers: list[NDArray[np.float64]] = []
    for name, held_out in own.items():
        others = fit(Labelled.joined([each for of in (own, strangers) for other, each in of.items() if other != name]))
        told.append(others.of(held_out.features))
        errors[name] = expected_error(told[-1], held_out.relevant)
        first = strangers[name].features[:, FEATURES.index("log_rank")] == 0
        told_strangers.append(others.of(strangers[name].features[first]))
    together = Labelled.joined(list(own.values()))
    first_hits = np.concatenate(told_strangers)
    return {
        "all": expected_error(np.concatenate(told), together.relevant),
        **errors,
        "first_hits_of_strangers": round(float(first_hits.mean()), 4) if len(first_hits) else 0.0,
    }


def as_toml(model: str, questions: Mapping[str, int], ways: Mapping[str, tuple[FittedWay, Mapping[str, float]]]) -> str:
    def table(name: str, values: Mapping[str, Any]) -> Iterator[str]:
        yield f"[{name}]"
        yield from (f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items())
        yield ""

    lines = [
        "# Written by `python -m tests.bench.confidence`; not by hand. What the features are: confidence.py.",
        f"# Fitted to the first {K} hits, by document, of the questions of these collections (and how many they are),",
        "# and of a third as many that ask for what the collection does not hold; every hit counts the same.",
        "# `calibration` is the expected calibration error (10 bins) of the questions of each collection by numbers",
        "# fitted to the others alone, and of all of them together; then the mean confidence of strangers' first hits.",
        "",
        f'fitted = "{datetime.now(UTC):%Y-%m-%d}"',
        f"model = {json.dumps(model)}",
        "",
        *table("collections", questions),
    ]
    for name, (_, errors) in ways.items():
        lines += table(f"calibration.{name}", errors)
    for name, (way, _) in ways.items():
        lines += [
            f"[ways.{name}]",
            f"intercept = {way.intercept}",
            *table(f"ways.{name}.coefficients", way.coefficients),
        ]
    return "\n".join(lines)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Fit hits' confidence to labelled collections.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--data-dir", action="append", required=True, type=Path)
    parser.add_argument("--alike", default="", help="Names of folders of one subject, with commas between.")
    parser.add_argument("--ways", default=",".join(WAYS), help="Fit these, with commas between; the others stay.")
    parser.add_argument("--dry", action="store_true", help="Write nothing.")
    asked = parser.parse_args()
    served = [opened(data_dir) for data_dir in asked.data_dir]
    threads = ThreadPoolExecutor(2)
    alike = set(asked.alike.split(","))
    collections = [read_folder(folder) for folder in asked.folders]
    anew = [way for way in WAYS if way in asked.ways.split(",")]
    own: dict[str, dict[str, Labelled]] = {way: {} for way in anew}
    strangers: dict[str, dict[str, Labelled]] = {way: {} for way in anew}
    for labelled in collections:
        name, collection = labelled.name, corpus_of([labelled]).collection
        holder = next((each for each in served if each.holds(collection)), None)
        if holder is None:
            raise SystemExit(f"No data directory holds {collection}; load it with `thalweg evaluate` first.")
        far = [each for each in collections if each.name != name and not {name, each.name} <= alike]
        strange = spread_out(
            tuple(question for each in far for question in each.questions), round(STRANGERS * len(labelled.questions))
        )
        for way in anew:
            own[way][name] = await hits_of(labelled.questions, labelled.judgements, collection, holder, way, threads)
            strangers[way][name] = await hits_of(strange, {}, collection, holder, way, threads)
        say(f"{name}: {len(labelled.questions)} questions, {len(strange)} strangers")
    known = fitted_judge()
    ways: dict[str, tuple[FittedWay, Mapping[str, float]]] = {
        way: (known.ways[way], known.calibration[way]) for way in WAYS if way in known.ways
    } | {
        way: (fit(Labelled.joined([*own[way].values(), *strangers[way].values()])), left_out(own[way], strangers[way]))
        for way in anew
    }
    for way, (_, errors) in ways.items():
        say(f"{way:<22} " + "  ".join(f"{name} {error:.3f}" for name, error in errors.items()))
    if not asked.dry:
        file = Path(confidence.__file__).with_name(confidence.FILE)
        questions = {labelled.name: len(labelled.questions) for labelled in collections}
        file.write_text(as_toml(served[0].model, questions, ways), encoding="utf-8")
    print(json.dumps({way: errors for way, (_, errors) in ways.items()}))


if __name__ == "__main__":
    asyncio.run(main())
