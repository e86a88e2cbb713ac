"""Leaves parts of the ranking out, one at a time: `python -m tests.bench.ablation --data-dir DIR FOLDER[=COLLECTION]…`.

The folders are labelled collections as `thalweg evaluate` takes them, or FILE=COLLECTION: lines of a question and the
ids that answer it; the data directory is one into which they were loaded. It is opened to read. Every question is
searched in process, by each channel alone, by rank fusion and by the whole engine; then by the whole engine without one
part. For each set P@1, nDCG@10 and R@5 in percent, and whether the law holds: the engine nowhere more than a point
below the best of the others. The last line is JSON; `--out` writes what `python -m tests.measured_results` reads.
"""

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest.mock import patch

import msgspec

from query_api.evaluation.aggregation import BASELINE_MEASURES
from query_api.evaluation.approaches import APPROACHES
from query_api.evaluation.datasets import LabelledCollection, Question, read_questions, spread_out
from query_api.evaluation.ranking_measures import measure_rankings
from query_api.evaluation.report import NON_INFERIORITY_MARGIN
from query_api.retrieval import fusion
from query_api.retrieval.pipeline import search
from query_api.retrieval.retrievers import graph_scoring
from query_api.retrieval.retrievers.graph_scoring import TermWeights
from query_api.retrieval.search_context import SearchSettings
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.bench.confidence import PATIENT, Served, folder_and_collection, opened

K = 10
MEASURES = ("P@1", *BASELINE_MEASURES)
WHOLE = "hybrid"
WITHOUT = "without "
Rankings = Mapping[str, Sequence[str]]
Figures = Mapping[str, float]


class LabelledSet(NamedTuple):
    """A labelled collection, the questions asked of it, and where it is in the store."""

    labelled: LabelledCollection
    questions: Sequence[Question]
    collection: str


@contextmanager
def without_coverage() -> Iterator[None]:
    """The first twenty stay in the order of their scores."""
    with patch.object(fusion, "_ordered_by_coverage", lambda order, *_: list(order)):
        yield


@contextmanager
def without_graph() -> Iterator[None]:
    """The gate is shut whatever is asked."""
    with patch("query_api.retrieval.graph_channel.open_gate", lambda *_: 0.0):
        yield


@contextmanager
def without_gate() -> Iterator[None]:
    """It is open whatever is asked."""
    with patch("query_api.retrieval.graph_channel.open_gate", lambda *_: 1.0):
        yield


@contextmanager
def without_name_use() -> Iterator[None]:
    """Whatever is a title somewhere is surely a name."""
    with patch("query_api.retrieval.graph_channel.name_use", lambda *_: lambda asked: dict.fromkeys(asked, 1.0)):
        yield


@contextmanager
def without_web() -> Iterator[None]:
    """Only a name opens the gate."""
    with patch.object(graph_scoring, "WEB", 0.0):
        yield


PARTS: Mapping[str, Callable[[], Any]] = {
    "coverage": without_coverage,
    "graph": without_graph,
    "gate": without_gate,
    "name_use": without_name_use,
    "web": without_web,
}
OF_THE_GRAPH_ALONE = {"seed_alone", "prior"}  # they count nothing in the whole engine
TERMS = tuple(field.name for field in fields(TermWeights) if field.name not in OF_THE_GRAPH_ALONE)


async def rankings_of(
    one: LabelledSet, parameters: Mapping[str, str], weights: TermWeights, served: Served, threads: ThreadPoolExecutor
) -> Rankings:
    settings = SearchSettings(budgets=PATIENT, terms=weights)
    found = {}
    for question in one.questions:
        request = SearchRequest.model_validate(
            {"q": question.text, "k": K, "group": "document", "collection": one.collection, **parameters}
        )
        answer = search(request, "r", served.snapshot, served.encoder, threads, settings)
        found[question.id] = [part.document_id async for part in answer if isinstance(part, Hit)]
    return found


def figures_of(one: LabelledSet, rankings: Rankings) -> Figures:
    judgements = {question.id: one.labelled.judgements[question.id] for question in one.questions}
    values = measure_rankings(rankings, judgements, K)
    return {measure: round(100 * fmean(values[measure]), 2) for measure in MEASURES}


def gain_of(part: str, figures: Mapping[str, Figures]) -> float:
    """What the whole engine is above itself without the part, in points of the mean of nDCG@10 and R@5."""
    mean = {name: fmean(of[measure] for measure in BASELINE_MEASURES) for name, of in figures.items()}
    return mean[WHOLE] - mean[WITHOUT + part]


def against_best(figures: Mapping[str, Figures], measure: str) -> tuple[str, float]:
    """The best of the others, and what the whole engine is above it."""
    others = [name for name in figures if name != WHOLE and not name.startswith(WITHOUT)]
    best = max(others, key=lambda name: figures[name][measure])
    return best, figures[WHOLE][measure] - figures[best][measure]


def law_of(figures: Mapping[str, Figures]) -> str:
    """What the whole engine is above the best baseline, by each measure."""
    told = []
    for measure in figures[WHOLE]:
        best, difference = against_best(figures, measure)
        sign = "holds" if difference >= -100 * NON_INFERIORITY_MARGIN else "BROKEN"
        told.append(f"{measure} {difference:+.1f} to {best} ({sign})")
    return ", ".join(told)


def labelled_set(argument: str, most: int | None) -> LabelledSet:
    source, _, collection = argument.partition("=")
    if Path(source).is_file():
        labelled = msgspec.structs.replace(read_questions(Path(source)), name=collection)
    else:
        labelled, collection = folder_and_collection(argument)
    return LabelledSet(labelled, spread_out(labelled.questions, most), collection)


def line(name: str, figures: Figures) -> str:
    return f"  {name:<28}" + "  ".join(f"{measure} {value:5.1f}" for measure, value in figures.items())


async def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the ranking without one of its parts.")
    parser.add_argument("folders", nargs="+", help="A folder, or FOLDER=COLLECTION or FILE=COLLECTION.")
    parser.add_argument("--data-dir", required=True, type=Path)
    parser.add_argument("--questions", type=int, help="At most so many of each folder.")
    parser.add_argument(
        "--without",
        default=",".join([*PARTS, *TERMS]),
        help="Parts and terms, with commas between; 'nothing' for none.",
    )
    parser.add_argument("--out", type=Path, help="Write the figures there, as JSON.")
    asked = parser.parse_args()
    left_out = [name for name in asked.without.split(",") if name in PARTS or name in TERMS]
    served, threads = opened(asked.data_dir), ThreadPoolExecutor(2)
    found: dict[str, dict[str, Figures]] = {}
    sets = []
    held = served.snapshot.text.fields.collections()
    whole = TermWeights()
    for argument in asked.folders:
        one = labelled_set(argument, asked.questions)
        if one.collection not in held:
            raise SystemExit(f"{asked.data_dir} holds no {one.collection!r}; load it with `thalweg evaluate` first.")
        print(f"{one.labelled.name}: {len(one.questions)} questions")
        of_set = found[one.labelled.name] = {}
        facts = {"documents": held[one.collection].documents, "questions": len(one.questions)}
        sets.append({"name": one.labelled.name, **facts, "figures": of_set})
        for name, approach in APPROACHES.items():
            if approach.baseline or name == WHOLE:
                of_set[name] = figures_of(one, await rankings_of(one, approach.parameters, whole, served, threads))
                print(line(name, of_set[name]), flush=True)
        print(f"  the law: {law_of(of_set)}", flush=True)
        for part in left_out:
            weights = replace(whole, **{part: 0.0}) if part in TERMS else whole
            with PARTS[part]() if part in PARTS else nullcontext():
                of_part = figures_of(
                    one, await rankings_of(one, APPROACHES[WHOLE].parameters, weights, served, threads)
                )
            of_set[WITHOUT + part] = of_part
            print(line(WITHOUT + part, of_part), flush=True)
    for part in left_out:
        gains = [gain_of(part, of) for of in found.values()]
        print(f"{part:<24} gains {fmean(gains):+.2f} on the mean, from {min(gains):+.2f} to {max(gains):+.2f}")
    if asked.out:
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        asked.out.write_text(json.dumps({"made_at": made_at, "model": served.model, "sets": sets}) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
