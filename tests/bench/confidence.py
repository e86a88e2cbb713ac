"""Fits hits' confidence anew: `python -m tests.bench.confidence --data-dir DIR… [--alike A,B] FOLDER[=COLLECTION]…`.

The folders are labelled collections as `thalweg evaluate` takes them, and each data directory is one into which it
has loaded some of them, or which holds the named collection; they are opened to read. Of each at most 200 questions
are searched in process, in every way of asking; the ten hits of each are labelled by the judgements, and a logistic
regression is fitted to what the engine knew of them, every hit counting the same. Without questions that nothing
answers a best hit would look likely however bad it is, for judged questions all have an answer; so for two questions
there are three strangers, asked of a collection of another subject (`--alike` tells which are of one). Four in five of
these name a document of the collection by its title.

Each collection is left out in turn, to see what the numbers are worth for one they were not fitted on; those of
`--measure` are in no fit, but for their questions as strangers. `--ways` fits only some of the ways, and keeps the
numbers of the others. Writes `query_api/retrieval/confidence.toml`, or the file named by `--output`, and prints
the errors; how many answers are marked unlikely; and for
`--unanswered FILE=COLLECTION`, questions that nothing in the collection answers, how likely their first hits are said
to be. Without folders nothing is fitted and these are measured as they are. The last line is JSON.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.errors import EncoderUnavailable
from indexer.generations import current_generation, read_manifest
from query_api.encoder import load_encoder
from query_api.evaluation.datasets import LabelledCollection, Question, corpus_of, read_folder, spread_out
from query_api.evaluation.statistics import calibrate
from query_api.index.snapshot import QueryEncoder, Snapshot
from query_api.index.stores import Stores
from query_api.index.text.snapshot import TextReader
from query_api.retrieval import confidence
from query_api.retrieval.confidence import FEATURES, WITHOUT_MEANING, FittedWay, fitted_judge
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchBudgets, SearchSettings
from schemas.choices import Mode
from schemas.hits import UNLIKELY_BELOW, Hit
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings

K = 10
QUESTIONS = 200  # of one collection, evenly spaced
STRANGERS = 1.5  # for each question of a collection
NAMELESS = 5  # one in so many strangers names nothing of the collection
TITLE_WORDS = 4  # what a person would name a document by
HALF, FOUR_FIFTHS = 0.5, 0.8
HIGHEST = 5  # shown of the unanswered
RIDGE = 1e-3
STEPS = 50
NO_GRADES: Mapping[str, int] = MappingProxyType({})
PATIENT = SearchBudgets(30, 30, 30, 30, 30, 30)
WAYS: Mapping[str, tuple[Mode, bool]] = {
    "hybrid": ("hybrid", True),
    f"hybrid_{WITHOUT_MEANING}": ("hybrid", False),
    "vector": ("vector", True),
    "keyword": ("keyword", True),
    "graph": ("graph", True),
    f"graph_{WITHOUT_MEANING}": ("graph", False),
    "graph_rerank": ("graph_rerank", True),
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
    stores = Stores(0, "documents")
    reader = TextReader.open(generation, max_vectors=10**9)
    graph = stores.build_graph(generation, stores.newest_graph_file(generation))
    snapshot = stores.snapshot(generation, reader, graph)
    encoder = RememberingEncoder(load_encoder(EmbeddingSettings(), data_dir))
    return Served(snapshot, encoder, read_manifest(generation).embedding_model, snapshot.text.holds)


class Asked(NamedTuple):
    """A question, and the grades of the documents that answer it."""

    text: str
    grades: Mapping[str, int] = NO_GRADES


def strangers_to(labelled: LabelledCollection, foreign: tuple[Question, ...], count: int) -> list[Asked]:
    """So many of the foreign questions, most of them with a title of the collection at their end."""
    titles = [title for each in labelled.documents if (title := each.title) and len(title.split()) <= TITLE_WORDS]
    asked = []
    for at, each in enumerate(spread_out(foreign, count)):
        title = titles[at * len(titles) // count] if titles and at % NAMELESS else ""
        asked.append(Asked(f"{each.text.rstrip(' ?.!')} {title}?" if title else each.text))
    return asked


async def assemble_hits(
    questions: Sequence[Asked], collection: str, served: Served, way: str, threads: ThreadPoolExecutor
) -> Labelled:
    """The first hits of every question, asked in one way."""
    mode, meaning = WAYS[way]
    encoder = served.encoder if meaning else AbsentEncoder()
    parts = [Labelled(np.zeros((0, len(FEATURES))), np.zeros(0))]
    for question in questions:
        judge = RecordingJudge(way, np.zeros((0, len(FEATURES))))
        settings = SearchSettings(budgets=PATIENT, judge=judge)
        request = SearchRequest(q=question.text, k=K, mode=mode, group="document", collection=collection)
        answer = search(request, "r", served.snapshot, encoder, threads, settings)
        hits = [part async for part in answer if isinstance(part, Hit)]
        relevant = np.array([float(question.grades.get(hit.document_id, 0) > 0) for hit in hits])
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


def first_hits(labelled: Labelled) -> NDArray[np.float64]:
    return labelled.features[labelled.features[:, FEATURES.index("first")] > 0]


def left_out(own: Mapping[str, Labelled], strangers: Mapping[str, Labelled]) -> dict[str, float]:
    """The expected calibration error of the questions of each collection by what the others teach, and of all these
    questions together; the share of strangers' first hits that is told to be more likely than not."""
    errors: dict[str, float] = {}
    told: list[NDArray[np.float64]] = []
    told_strangers = [np.zeros(0)]
    for name, held_out in own.items():
        others = fit(Labelled.joined([each for of in (own, strangers) for other, each in of.items() if other != name]))
        told.append(others.predict(held_out.features))
        errors[name] = expected_error(told[-1], held_out.relevant)
        told_strangers.append(others.predict(first_hits(strangers[name])))
    together = Labelled.joined(list(own.values()))
    first = np.concatenate(told_strangers)
    return {
        "all": expected_error(np.concatenate(told), together.relevant),
        **errors,
        "strangers_above_half": round(float((first > HALF).mean()), 4) if len(first) else 0.0,
    }


def marked_unlikely(way: FittedWay, judged: Mapping[str, Labelled]) -> str:
    """What `UNLIKELY_BELOW` marks, of hits and of answers."""
    if not judged:
        return "none"
    every = Labelled.joined(list(judged.values()))
    unlikely, right = way.of(every.features) < UNLIKELY_BELOW, every.relevant > 0
    return f"{(unlikely & right).sum()} of {int(right.sum())} answers, {unlikely.mean():.0%} of {len(right)} hits"


def lines_of(file: Path) -> list[str]:
    """One question a line; lines that begin with # are none."""
    lines = map(str.strip, file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


async def told_of_unanswered(
    texts: Sequence[str], collection: str, served: Served, way: str, fitted: FittedWay, threads: ThreadPoolExecutor
) -> dict[str, float]:
    """How likely the first hits are told to be for questions that nothing answers; the highest are printed."""
    told: dict[str, float] = {}
    for text in texts:
        first = first_hits(await assemble_hits([Asked(text)], collection, served, way, threads))
        told[text] = float(fitted.of(first)[0]) if len(first) else 0.0
    above = {f"above_{floor}": sum(each > floor for each in told.values()) for floor in (HALF, FOUR_FIFTHS)}
    say(f"{collection}, {way}, {len(told)} questions that nothing answers: {above}")
    for text in sorted(told, key=lambda each: -told[each])[:HIGHEST]:
        say(f"  {told[text]:.2f}  {text}")
    return {"questions": len(told), **above}


def as_toml(model: str, questions: Mapping[str, int], ways: Mapping[str, tuple[FittedWay, Mapping[str, float]]]) -> str:
    def table(name: str, values: Mapping[str, Any]) -> Iterator[str]:
        yield f"[{name}]"
        yield from (f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items())
        yield ""

    lines = [
        "# Written by `python -m tests.bench.confidence`; not by hand. What the features are: confidence.py.",
        f"# Fitted to the first {K} hits, by document, of the questions of these collections (and how many they are),",
        "# and of half as many again that nothing in the collection answers; every hit counts the same.",
        "# `calibration` is the expected calibration error (10 bins) of the questions of each collection by numbers",
        "# fitted to the others alone, and of all of them together; of collections that are not named here, by these",
        "# numbers; and the share of the unanswered questions whose first hit is told to be more likely than not.",
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


def holder_of(collection: str, served: Sequence[Served]) -> Served:
    for each in served:
        if each.holds(collection):
            return each
    raise SystemExit(f"No data directory holds {collection}; load it with `thalweg evaluate` first.")


def folder_and_collection(asked: str) -> tuple[LabelledCollection, str]:
    folder, _, collection = asked.partition("=")
    labelled = read_folder(Path(folder))
    return labelled, collection or corpus_of([labelled]).collection


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fit hits' confidence to labelled collections.")
    parser.add_argument("folders", nargs="*", type=folder_and_collection, metavar="FOLDER[=COLLECTION]")
    parser.add_argument("--data-dir", action="append", required=True, type=Path)
    parser.add_argument("--measure", action="append", default=[], type=folder_and_collection, metavar="FOLDER[=…]")
    parser.add_argument("--alike", default="", help="Names of folders of one subject, with commas between.")
    parser.add_argument("--ways", default=",".join(WAYS), help="Fit these, with commas between; the others stay.")
    parser.add_argument("--unanswered", action="append", default=[], metavar="FILE=COLLECTION", help="Measure these.")
    parser.add_argument("--output", type=Path, default=Path(confidence.__file__).with_name(confidence.FILE))
    parser.add_argument("--dry", action="store_true", help="Write nothing.")
    asked = parser.parse_args()
    if len(asked.folders) == 1:
        parser.error("One folder gives no foreign questions; give another one, of another subject.")
    return asked


async def main() -> None:
    asked = arguments()
    served = [opened(data_dir) for data_dir in asked.data_dir]
    threads = ThreadPoolExecutor(2)
    alike = set(asked.alike.split(","))
    collections: Sequence[tuple[LabelledCollection, str]] = asked.folders
    anew = [way for way in WAYS if way in asked.ways.split(",")]
    own: dict[str, dict[str, Labelled]] = {way: {} for way in anew}
    strangers: dict[str, dict[str, Labelled]] = {way: {} for way in anew}
    measured: dict[str, dict[str, Labelled]] = {way: {} for way in anew}
    questions: dict[str, int] = {}
    for labelled, collection in (*collections, *asked.measure):
        name, holder = labelled.name, holder_of(collection, served)
        chosen = spread_out(labelled.questions, QUESTIONS)
        judged = [Asked(each.text, labelled.judgements[each.id]) for each in chosen]
        is_fitted = (labelled, collection) in collections
        far = [
            each for each, _ in (*collections, *asked.measure) if each.name != name and not {name, each.name} <= alike
        ]
        foreign = tuple(question for each in far for question in each.questions)
        strange = strangers_to(labelled, foreign, round(STRANGERS * len(judged))) if is_fitted else []
        for way in anew:
            judged_hits = await assemble_hits(judged, collection, holder, way, threads)
            (own if is_fitted else measured)[way][name] = judged_hits
            if is_fitted:
                strangers[way][name] = await assemble_hits(strange, collection, holder, way, threads)
        questions |= {name: len(judged)} if is_fitted else {}
        say(f"{name}: {len(judged)} questions, {len(strange)} strangers")
    known = fitted_judge()
    ways: dict[str, tuple[FittedWay, Mapping[str, float]]] = {
        way: (known.ways[way], known.calibration[way]) for way in WAYS if way in known.ways
    }
    if collections:
        for way in anew:
            fitted = fit(Labelled.joined([*own[way].values(), *strangers[way].values()]))
            others = {
                name: expected_error(fitted.of(hits.features), hits.relevant) for name, hits in measured[way].items()
            }
            ways[way] = (fitted, left_out(own[way], strangers[way]) | others)
            say(f"{way:<22} " + "  ".join(f"{name} {error:.3f}" for name, error in ways[way][1].items()))
            say(
                f"{'':<22} unlikely: {marked_unlikely(fitted, own[way])}; to measure: "
                f"{marked_unlikely(fitted, measured[way])}"
            )
    if collections and not asked.dry:
        asked.output.write_text(as_toml(served[0].model, questions, ways), encoding="utf-8")
    found = {way: {"calibration": errors} for way, (_, errors) in ways.items()}
    for file, _, collection in (each.partition("=") for each in asked.unanswered):
        texts, holder = lines_of(Path(file)), holder_of(collection, served)
        for way in anew:
            found[way][collection] = await told_of_unanswered(texts, collection, holder, way, ways[way][0], threads)
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
