"""Fits hits' confidence: `python -m tests.bench.confidence --data-dir DIR… [--alike A,B] SOURCE…`.

A source is a labelled collection as `thalweg evaluate` takes it: FOLDER[=COLLECTION], or FILE.tsv=COLLECTION of lines
`question <tab> documents`. Each data directory is one into which some of them were loaded; they are opened to read. Of
each source at most `--questions` are searched in process, in every way of asking; the ten hits of each are labelled by
the judgements, and a logistic regression is fitted to what the engine knew of them. Sources whose names differ by
numbers at their ends, such as `scifact-200-1`, are samples of one collection, and every collection counts the same.

Without questions that nothing answers a best hit would look likely however bad it is, for judged questions all have an
answer. Questions of a file without documents are such; a folder of more than 20 questions gets half as many strangers,
asked of a collection of another subject (`--alike` names which are of one). Four in five of these name a document of
the collection by its title.

Each collection is left out in turn, to see what the numbers are worth for one they were not fitted on, also by the
number of its documents; those of `--measure` are in no fit, but for their questions as strangers. `--ways` fits only
some of the ways, and keeps the numbers of the others. Writes `query_api/retrieval/confidence.toml`, or the file named
by `--output`, and prints the errors; and for `--unanswered FILE=COLLECTION`, questions that nothing in the collection
answers, how likely their first hits are said to be. Without sources nothing is fitted and these are measured as they
are. The last line is JSON.
"""

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.errors import EncoderUnavailable
from indexer.generation_folders import current_generation, read_manifest
from query_api.evaluation.datasets import (
    LabelledCollection,
    Question,
    corpus_of,
    read_folder,
    read_questions,
    spread_out,
)
from query_api.evaluation.statistics import calibrate
from query_api.index.search_snapshot import QueryEncoder, Snapshot
from query_api.index.store_opening import Stores
from query_api.index.text.text_snapshot import TextReader
from query_api.question_encoder import BACKGROUND, GuardedEncoder, load_encoder
from query_api.retrieval import confidence
from query_api.retrieval.confidence import FEATURES, WITHOUT_MEANING, ModeCalibration, fitted_calibration
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchBudgets, SearchSettings
from schemas.choices import Mode
from schemas.hits import LIKELY_FROM, UNLIKELY_BELOW, Hit
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings

_SAMPLE = re.compile(r"(?:-\d+)+$")
SMALL = "folder-"  # what collections of the small folders are named by
K = 10
STRANGERS = 0.5  # for each question of a folder
FEW_QUESTIONS = 20  # of a sample, too few for strangers of its own
NAMELESS = 5  # one in so many strangers names nothing of the collection
TITLE_WORDS = 4  # what a person would name a document by
SIZES = (10, 20, 50, 100, 200)  # documents, by which first hits are measured apart; more are the rest
HALF, FOUR_FIFTHS = 0.5, 0.8
HIGHEST = 5  # shown of the unanswered
MOST_DOCUMENTS = 100_000  # counted of a collection
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
    """Hits of one collection: (n_hits, len(FEATURES)); (n_hits,) 1 for a relevant one, else 0; (n_hits,) whether
    anything answers the question; (n_hits,) how many documents the collection has. Those of one question stand
    together, the first one first."""

    features: NDArray[np.float64]
    relevant: NDArray[np.float64]
    answered: NDArray[np.bool_]
    documents: NDArray[np.intp]

    @classmethod
    def joined(cls, parts: Iterable["Labelled"]) -> "Labelled":
        nothing = cls(
            np.zeros((0, len(FEATURES))), np.zeros(0), np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.intp)
        )
        return cls(*map(np.concatenate, zip(*[nothing, *parts], strict=True)))

    def where(self, rows: NDArray[np.bool_]) -> "Labelled":
        return Labelled(*(column[rows] for column in self))

    @property
    def first(self) -> NDArray[np.bool_]:
        """(n_hits,) whether it is the first hit of its question."""
        return self.features[:, FEATURES.index("first")] > 0


@dataclass
class RecordingCalibration:
    """Keeps what it is asked in one way, and has no opinion."""

    way: str
    features: NDArray[np.float64]

    def probabilities(self, way: str, features: NDArray[np.float64]) -> None:
        if way == self.way:
            self.features = features


class RememberingEncoder:
    """Embeds each question once, whatever the number of ways it is asked in."""

    def __init__(self, encoder: GuardedEncoder) -> None:
        encoder.probe()
        self.background = encoder.background
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        for text in texts:
            if text not in self._known:
                self._known[text] = self._encoder.encode_queries([text])[0]
        return np.stack([self._known[text] for text in texts])


class AbsentEncoder:
    """One that is away: what the service goes on with then is a way of asking too."""

    background = BACKGROUND

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
    text = TextReader.open(generation, max_vectors=10**9).snapshot()
    graph = stores.build_graph(generation, stores.newest_graph_file(generation))
    snapshot = stores.snapshot(generation, text, graph)
    encoder = RememberingEncoder(GuardedEncoder(load_encoder(EmbeddingSettings(), data_dir)))
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
    documents = len(served.snapshot.text.list_documents(collection, None, MOST_DOCUMENTS)[0])
    parts = []
    for question in questions:
        calibration = RecordingCalibration(way, np.zeros((0, len(FEATURES))))
        settings = SearchSettings(budgets=PATIENT, calibration=calibration)
        request = SearchRequest(q=question.text, k=K, mode=mode, group="document", collection=collection)
        answer = search(request, "r", served.snapshot, encoder, threads, settings)
        hits = [part async for part in answer if isinstance(part, Hit)]
        relevant = np.array([float(question.grades.get(hit.document_id, 0) > 0) for hit in hits])
        rows = [hit.rank - 1 for hit in hits]
        if len(calibration.features):
            answered = np.full(len(rows), any(grade > 0 for grade in question.grades.values()))
            parts.append(Labelled(calibration.features[rows], relevant, answered, np.full(len(rows), documents)))
    return Labelled.joined(parts)


def fit(collections: Iterable[Labelled]) -> ModeCalibration:
    """Logistic regression by Newton's method, with a ridge on standardised features, every collection weighing the
    same; numbers for the features as they are. A feature that never varies gets 0."""
    parts = [each for each in collections if len(each.relevant)]
    labelled = Labelled.joined(parts)
    weights = np.concatenate([np.full(len(each.relevant), 1 / len(each.relevant)) for each in parts])
    weights /= weights.mean()
    mean, spread = labelled.features.mean(axis=0), labelled.features.std(axis=0)
    varies = spread > 1e-9
    scaled = np.where(varies, (labelled.features - mean) / np.where(varies, spread, 1.0), 0.0)
    design = np.column_stack([np.ones(len(scaled)), scaled])
    ridge = np.eye(design.shape[1]) * RIDGE * len(scaled)
    ridge[0, 0] = 0.0
    slopes = np.zeros(design.shape[1])
    for _ in range(STEPS):
        likely = 1.0 / (1.0 + np.exp(-design @ slopes))
        curvature = design.T @ (design * (weights * likely * (1 - likely))[:, None]) + ridge
        slopes -= np.linalg.solve(curvature, design.T @ (weights * (likely - labelled.relevant)) + ridge @ slopes)
    own = np.where(varies, slopes[1:] / np.where(varies, spread, 1.0), 0.0)
    return ModeCalibration(
        round(float(slopes[0] - own @ mean), 4),
        {name: round(float(slope), 4) for name, slope in zip(FEATURES, own, strict=True)},
    )


def expected_error(likely: NDArray[np.float64], relevant: NDArray[np.float64]) -> float:
    found = calibrate(list(zip(likely.tolist(), (relevant > 0).tolist(), strict=True)))
    return float("nan") if found is None else round(found.expected_error, 4)


class Judged(NamedTuple):
    """Hits, and how likely each is said to be by what other collections teach."""

    hits: Labelled
    likely: NDArray[np.float64]

    def error(self, rows: NDArray[np.bool_]) -> float:
        return expected_error(self.likely[rows], self.hits.relevant[rows])


def left_out(own: Mapping[str, Labelled]) -> dict[str, Judged]:
    """The hits of each collection, judged by what the others teach."""
    judged = {}
    for name, held_out in own.items():
        others = fit(hits for other, hits in own.items() if other != name)
        judged[name] = Judged(held_out, others.predict(held_out.features))
    return judged


def errors_of(judged: Mapping[str, Judged]) -> dict[str, float]:
    """The expected calibration errors: of the first hits of all collections, of all hits, of the first hits of small
    folders alone, of those of collections of each size and of each collection; and what the words for confidence are
    worth."""

    def together(names: Iterable[str]) -> Judged:
        chosen = [judged[name] for name in names]
        likely = np.concatenate([np.zeros(0), *(each.likely for each in chosen)])
        return Judged(Labelled.joined(each.hits for each in chosen), likely)

    every, small = together(judged), together(name for name in judged if name.startswith(SMALL))
    errors = {"first": every.error(every.hits.first), "all": every.error(every.hits.first | True)}
    if len(small.likely):
        errors["first_of_folders"] = small.error(small.hits.first)
    for name, rows in by_size(every.hits.documents):
        if (of_size := rows & every.hits.first).any():
            errors[f"first_of_{name}_documents"] = every.error(of_size)
    errors |= {name: each.error(each.hits.first) for name, each in judged.items()}
    return errors | words_of(every)


def by_size(documents: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The rows of collections of each size, by the most documents that these have."""
    least = 0
    for most in SIZES:
        yield f"up_to_{most}", (documents > least) & (documents <= most)
        least = most
    yield f"over_{least}", documents > least


def words_of(judged: Judged) -> dict[str, float]:
    """Shares: of the likely hits, those that are right; of the unlikely ones, those that are wrong; of right first
    hits, those that are not unlikely; of first hits for questions that nothing answers, those that are; of answers with
    unlikely hits alone, those without a right one, of all collections and of those of each size."""
    hits, likely = judged.hits, judged.likely
    right, unlikely, first = hits.relevant > 0, likely < UNLIKELY_BELOW, hits.first

    def share(of: NDArray[np.bool_], among: NDArray[np.bool_]) -> float:
        return round(float(of[among].mean()), 4) if among.any() else 0.0

    found = {
        "likely_right": share(right, likely >= LIKELY_FROM),
        "unlikely_wrong": share(~right, unlikely),
        "right_first_not_unlikely": share(~unlikely, first & right),
        "unanswered_first_unlikely": share(unlikely, first & ~hits.answered),
    }
    starts = np.flatnonzero(first)
    if len(starts):
        vain = np.logical_and.reduceat(unlikely, starts)
        wrong = ~np.logical_or.reduceat(right, starts)
        found["unlikely_answers_wrong"] = share(wrong, vain)
        for name, rows in by_size(hits.documents[starts]):
            if (rows & vain).any():
                found[f"unlikely_answers_of_{name}_documents_wrong"] = share(wrong, rows & vain)
    return found


def lines_of(file: Path) -> list[str]:
    """One question a line; lines that begin with # are none."""
    lines = map(str.strip, file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


async def likely_of_unanswered(
    texts: Sequence[str],
    collection: str,
    served: Served,
    way: str,
    fitted: ModeCalibration,
    threads: ThreadPoolExecutor,
) -> dict[str, float]:
    """How likely the first hits are said to be for questions that nothing answers; the highest are printed."""
    likely: dict[str, float] = {}
    for text in texts:
        hits = await assemble_hits([Asked(text)], collection, served, way, threads)
        first = hits.features[hits.first]
        likely[text] = float(fitted.predict(first)[0]) if len(first) else 0.0
    above = {f"above_{floor}": sum(each > floor for each in likely.values()) for floor in (HALF, FOUR_FIFTHS)}
    say(f"{collection}, {way}, {len(likely)} questions that nothing answers: {above}")
    for text in sorted(likely, key=lambda each: -likely[each])[:HIGHEST]:
        say(f"  {likely[text]:.2f}  {text}")
    return {"questions": len(likely), **above}


def as_toml(
    model: str, questions: Mapping[str, int], ways: Mapping[str, tuple[ModeCalibration, Mapping[str, float]]]
) -> str:
    def table(name: str, values: Mapping[str, Any]) -> Iterator[str]:
        yield f"[{name}]"
        yield from (f"{json.dumps(key)} = {json.dumps(value)}" for key, value in values.items())
        yield ""

    lines = [
        "# Written by `python -m tests.bench.confidence`; not by hand. What the features are: confidence.py.",
        f"# Fitted to the first {K} hits, by document, of the questions of these collections (and how many they are),",
        "# and of questions that nothing in them answers; every collection counts the same. `errors` are the",
        "# expected calibration errors (10 bins) by numbers fitted to the others: of all first hits, of all hits,",
        "# of the first hits of the small folders, of collections of each size and of each collection; of those that",
        "# are not named here, by these numbers. Then the shares of likely hits that are right, of unlikely ones that",
        "# are wrong, of right first hits that are not unlikely, of first hits that are unlikely where nothing",
        "# answers, and of answers with unlikely hits alone that hold no right one, by the size of the collection.",
        "",
        f'fitted = "{datetime.now(UTC):%Y-%m-%d}"',
        f"model = {json.dumps(model)}",
        "",
        *table("collections", questions),
    ]
    for name, (_, errors) in ways.items():
        lines += table(f"errors.{name}", errors)
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
    """A labelled collection, and the one of the service that holds its documents. A file is named after the latter."""
    source, _, collection = asked.partition("=")
    if collection:
        labelled = read_questions(Path(source))
        named = labelled if Path(source).is_dir() else msgspec.structs.replace(labelled, name=collection)
        return named, collection
    labelled = read_folder(Path(source))
    return labelled, corpus_of([labelled]).collection


def kind_of(name: str) -> str:
    """What it is a sample of: `scifact` of `scifact-200-1`."""
    return _SAMPLE.sub("", name)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fit hits' confidence to labelled collections.")
    parser.add_argument("folders", nargs="*", type=folder_and_collection, metavar="SOURCE")
    parser.add_argument("--data-dir", action="append", required=True, type=Path)
    parser.add_argument("--measure", action="append", default=[], type=folder_and_collection, metavar="SOURCE")
    parser.add_argument("--questions", type=int, default=200, help="Of one source at most, evenly spaced.")
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
    fitted_here = {labelled.name for labelled, _ in asked.folders}
    every: Sequence[tuple[LabelledCollection, str]] = [*asked.folders, *asked.measure]
    chosen_ways = [way for way in WAYS if way in asked.ways.split(",")]
    parts: dict[str, dict[str, list[Labelled]]] = {way: {} for way in chosen_ways}
    questions: dict[str, int] = {}
    for labelled, collection in every:
        name, kind, holder = labelled.name, kind_of(labelled.name), holder_of(collection, served)
        chosen = [
            Asked(each.text, labelled.judgements[each.id]) for each in spread_out(labelled.questions, asked.questions)
        ]
        unanswered = [Asked(each.text) for each in labelled.unanswered]
        if not unanswered and len(chosen) > FEW_QUESTIONS:
            far = [each for each, _ in every if kind_of(each.name) != kind and not {kind, kind_of(each.name)} <= alike]
            foreign = tuple(question for each in far for question in each.questions)
            unanswered = strangers_to(labelled, foreign, round(STRANGERS * len(chosen)))
        for way in chosen_ways:
            hits = await assemble_hits([*chosen, *unanswered], collection, holder, way, threads)
            parts[way].setdefault(kind, []).append(hits)
        questions[kind] = questions.get(kind, 0) + len(chosen)
        say(f"{name}: {len(chosen)} questions, {len(unanswered)} that nothing answers")
    known = fitted_calibration()
    ways: dict[str, tuple[ModeCalibration, Mapping[str, float]]] = {
        way: (known.ways[way], known.errors[way]) for way in WAYS if way in known.ways
    }
    fitted_kinds = {kind_of(name) for name in fitted_here}
    for way in chosen_ways if fitted_here else ():
        joined = {kind: Labelled.joined(of) for kind, of in parts[way].items()}
        own = {kind: hits for kind, hits in joined.items() if kind in fitted_kinds}
        fitted = fit(own.values())
        others = {kind: Judged(hits, fitted.predict(hits.features)) for kind, hits in joined.items() if kind not in own}
        ways[way] = (
            fitted,
            errors_of(left_out(own)) | {kind: each.error(each.hits.first) for kind, each in others.items()},
        )
        say(f"{way:<22} " + "  ".join(f"{name} {error:.3f}" for name, error in ways[way][1].items()))
    if fitted_here and not asked.dry:
        fitted_questions = {kind: count for kind, count in questions.items() if kind in fitted_kinds}
        asked.output.write_text(as_toml(served[0].model, fitted_questions, ways), encoding="utf-8")
    found = {way: {"calibration": errors} for way, (_, errors) in ways.items()}
    for file, _, collection in (each.partition("=") for each in asked.unanswered):
        texts, holder = lines_of(Path(file)), holder_of(collection, served)
        for way in chosen_ways:
            found[way][collection] = await likely_of_unanswered(texts, collection, holder, way, ways[way][0], threads)
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
