"""Train the scorer of answers' sentences on labelled folders and write the weights that are shipped.

    python -m training.train_answers --data-dir DIR… --train FOLDER… [--only FIELD=VALUE…]
        [--refusal SOURCE…] [--measure FOLDER…] [--measure-only FIELD=VALUE…] [--out FILE]

A source is FOLDER, which was loaded into one of the data directories by `thalweg evaluate`, or FILE.tsv=COLLECTION of
lines `question <tab> documents`. Each question is searched as the service searches it; of those of `--train`, the
sentences of the first hits are labelled by what the folder says (`query_api/evaluation/answer_labels.py`), and a forest
learns from them. `--only subset=train100` leaves the questions of a split.

Whether anything answers is learned from the questions of `--refusal`, every source weighing the same: as they are,
where all relevant documents are among the first hits; with these taken away, which leaves what a search finds where
nothing answers; from those without documents; and, a third of what is not answered, from strangers: questions of other
sources, but for those of a FOLDER in another one, since both are of an encyclopedia. Each source is left out in turn to
see what it is worth elsewhere; the threshold is the one at which a twentieth of the answerable is refused so.

`--measure` folders are in no fit, but for those of `--train`, of which `--measure-only` leaves other questions. Prints
their figures as JSON on the last line.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from query_api.answers.extract import Extract, describe, extract
from query_api.answers.features import FEATURES
from query_api.answers.forest import LEAF, WEIGHTS_FILE, AnswerWeights, Forest
from query_api.answers.refusal import SIGNS
from query_api.answers.sentences import HITS, TermIdf
from query_api.evaluation.answer_labels import AnswerLabels
from query_api.evaluation.datasets import LabelledCollection, corpus_of, read_folder, read_questions
from query_api.query.analysis import Question
from query_api.retrieval.exact_scores import term_idf
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchSettings
from schemas.answers import SENTENCES, WORDS
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.bench.confidence import PATIENT, Served, opened, say

WEIGHTS = Path(__file__).parents[1] / "query_api" / "answers" / WEIGHTS_FILE
FOUND = 2 * HITS  # hits of a search, so that as many are left where the relevant ones are taken away
TREES, DEPTH, LEAST_AT_LEAF = 100, 8, 8
REGULARISATION = 0.3  # of the regression, on standardised signs
REFUSED = 0.05  # of the answerable
STRANGERS = 30  # asked of a source
OF_STRANGERS = 1 / 3  # of the weight of what is not answered
MORE_SENTENCES, MORE_WORDS = 5, 10_000
SUPPORT_FROM = 0.3  # how likely a sentence is needed that is counted as such


class Found(NamedTuple):
    """A question, what a search found for it, and the idf of its terms."""

    text: str
    hits: list[Hit]
    weights: TermIdf
    labels: AnswerLabels

    @property
    def complete(self) -> bool:
        """Whether all relevant documents are among the first hits."""
        return bool(self.labels.relevant) and self.labels.relevant <= {hit.document_id for hit in self.hits[:HITS]}

    def without_relevant(self) -> "Found":
        return self._replace(hits=[hit for hit in self.hits if hit.document_id not in self.labels.relevant])

    def answer(self, weights: AnswerWeights, sentences: int = SENTENCES, words: int = WORDS) -> Extract:
        question = Question(self.text)
        return extract(question, self.hits, self.weights, most_sentences=sentences, most_words=words, learned=weights)


class Source(NamedTuple):
    """A labelled source, and the collection that its documents are in."""

    name: str
    labelled: LabelledCollection
    collection: str
    served: Served

    @classmethod
    def of(cls, name: str, dirs: Sequence[Served]) -> "Source":
        path, _, collection = name.partition("=")
        labelled = read_questions(Path(path)) if collection else read_folder(Path(path))
        collection = collection or corpus_of([labelled]).collection
        return cls(name, labelled, collection, next(each for each in dirs if each.holds(collection)))

    @property
    def is_folder(self) -> bool:
        return "=" not in self.name

    async def found(self, only: Sequence[str]) -> list[Found]:
        chosen = []
        for question in (*self.labelled.questions, *self.labelled.unanswered):
            if all(_has(question.metadata or {}, *each.split("=", 1)) for each in only):
                grades = self.labelled.judgements.get(question.id, {})
                relevant = [document for document, grade in grades.items() if grade > 0]
                chosen.append((question.text, AnswerLabels.of(question, relevant)))
        return await self.searched(chosen)

    async def searched(self, questions: Sequence[tuple[str, AnswerLabels]]) -> list[Found]:
        found, snapshot = [], self.served.snapshot
        with ThreadPoolExecutor(4) as threads:
            for text, labels in questions:
                request = SearchRequest(q=text, k=FOUND, collection=self.collection)
                frames = search(request, "r", snapshot, self.served.encoder, threads, SearchSettings(budgets=PATIENT))
                hits = [frame async for frame in frames if isinstance(frame, Hit)]
                found.append(Found(text, hits, term_idf(snapshot.text, text, self.collection), labels))
        return found


def _has(metadata: Mapping[str, Any], field: str, value: str) -> bool:
    held = metadata.get(field, value)
    return value in held if isinstance(held, list) else value == held


def rows_of(found: Found) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The features of the sentences, and (n, 2) whether each holds the answer and is needed for it. Where no answer is
    given, as for a claim, what is needed answers."""
    _, sentences, _, features = describe(Question(found.text), found.hits, found.weights, WORDS)
    labels = []
    for each in sentences:
        hit = found.hits[each.hit]
        supports = found.labels.supports(hit.document_id, hit.title, place_in_document(hit, each.place), each.text)
        is_relevant = hit.document_id in found.labels.relevant
        answers = is_relevant and found.labels.answer_in(each.text) if found.labels.answers else supports
        labels.append((answers, supports))
    return features, np.array(labels, dtype=np.bool_).reshape(-1, 2)


def place_in_document(hit: Hit, place: int) -> int:
    """Sentences are counted from the document's beginning; of a later passage their numbers are not known: below 0."""
    return place if hit.parent_start == 0 else -1 - place


def fit_forest(examples: Sequence[tuple[NDArray[np.float64], NDArray[np.bool_]]]) -> Forest:
    features = np.concatenate([each for each, _ in examples]).astype(np.float32)
    labels = np.concatenate([each for _, each in examples])
    fitted = RandomForestClassifier(TREES, max_depth=DEPTH, min_samples_leaf=LEAST_AT_LEAF, random_state=0)
    fitted.fit(features, labels)
    roots, parts, start = [], [], 0
    for tree in (estimator.tree_ for estimator in fitted.estimators_):
        inner = tree.children_left != LEAF
        parts.append(
            (
                np.where(inner, tree.feature, LEAF),
                tree.threshold,
                np.where(inner, tree.children_left + start, 0),
                np.where(inner, tree.children_right + start, 0),
                tree.value[:, :, -1] / tree.value.sum(axis=2),
            )
        )
        roots.append(start)
        start += len(tree.feature)
    kinds = (np.int16, np.float32, np.int32, np.int32, np.float16)
    columns = [np.concatenate(part).astype(kind) for part, kind in zip(zip(*parts, strict=True), kinds, strict=True)]
    return Forest(np.array(roots, dtype=np.int32), *columns)


class Judged(NamedTuple):
    """Signs of answers, (n, len(SIGNS)), (n,) whether anything answers, and (n,) whether a stranger is asked."""

    signs: NDArray[np.float64]
    answered: NDArray[np.bool_]
    strange: NDArray[np.bool_]

    @property
    def shares(self) -> NDArray[np.float64]:
        """(n,) what each weighs, 2 in all."""
        own = ~self.answered & ~self.strange
        kinds = ((self.answered, 1.0), (own, 1 - OF_STRANGERS), (self.strange, OF_STRANGERS))
        parts = [rows * weight / max(rows.sum(), 1) for rows, weight in kinds]
        shares: NDArray[np.float64] = np.sum(parts, axis=0)
        return shares


def judged(founds: Sequence[Found], strangers: Sequence[Found], weights: AnswerWeights) -> Judged:
    asked = [(found, True, False) for found in founds if found.complete]
    asked += [(found.without_relevant(), False, False) for found in founds]
    asked += [(found, False, True) for found in strangers]
    rows = [(signs, *kind) for found, *kind in asked if (signs := found.answer(weights).signs) is not None]
    return Judged(*map(np.array, zip(*rows, strict=True)))


async def strangers_to(source: Source, every: Sequence[tuple[Source, Sequence[Found]]]) -> list[Found]:
    """Questions of other sources, evenly spaced, and what is found for them in this one."""
    far = [founds for each, founds in every if each.name != source.name and not (each.is_folder and source.is_folder)]
    texts = [found.text for founds in far for found in founds if found.complete]
    nothing = AnswerLabels((), frozenset(), frozenset(), {}, frozenset())
    return await source.searched([(text, nothing) for text in texts[:: max(1, len(texts) // STRANGERS)]])


def fit_refusal(weights: AnswerWeights, sources: Sequence[Judged]) -> AnswerWeights:
    """A logistic regression, in which every source weighs the same, and in it the answered as much as the others."""
    signs, answered, share = (
        np.concatenate([getattr(each, part) for each in sources]) for part in ("signs", "answered", "shares")
    )
    mean, spread = signs.mean(axis=0), np.maximum(signs.std(axis=0), 1e-6)
    fitted = LogisticRegression(C=REGULARISATION, max_iter=5_000)
    fitted.fit((signs - mean) / spread, answered, sample_weight=share / share.mean())
    slopes = fitted.coef_[0] / spread
    return weights._replace(intercept=float(fitted.intercept_[0] - slopes @ mean), signs=slopes)


def left_out(weights: AnswerWeights, sources: Mapping[str, Judged]) -> dict[str, Any]:
    """The threshold, and the shares refused by it of each source's answerable and unanswerable questions and of
    strangers, by what the others teach."""
    sure = {}
    for name, each in sources.items():
        others = fit_refusal(weights, [other for key, other in sources.items() if key != name])
        sure[name] = np.array([others.answered(signs) for signs in each.signs])
    threshold = float(
        np.quantile(np.concatenate([sure[name][each.answered] for name, each in sources.items()]), REFUSED)
    )

    def refused(names: Sequence[str]) -> list[float]:
        values = np.concatenate([sure[name] for name in names]) < threshold
        truth, strange = (
            np.concatenate([getattr(sources[name], part) for name in names]) for part in Judged._fields[1:]
        )
        return [round(float(values[rows].mean()), 3) for rows in (truth, ~truth & ~strange, strange)]

    return {
        "threshold": round(threshold, 3),
        "all": refused(list(sources)),
        **{name: refused([name]) for name in sources},
    }


def figures(founds: Sequence[Found], weights: AnswerWeights) -> dict[str, float]:
    """Of the questions whose relevant documents are all among the first hits: the shares whose answer is in as many
    sentences, and the mean F1 of the sentences that are said to be needed."""
    complete = [found for found in founds if found.complete]
    asked = [found for found in complete if found.labels.answers]
    report: dict[str, float] = {"questions": len(asked)}
    for sentences, words in ((SENTENCES, WORDS), (MORE_SENTENCES, MORE_WORDS)):
        held = [found.labels.answer_in(text_of(found.answer(weights, sentences, words))) for found in asked]
        report[f"answer_in_{sentences}_sentences"] = round(float(np.mean(held)), 4)
    known = [support_f1(found, weights) for found in complete if found.labels.by_title]
    return report | ({"support_f1": round(float(np.mean(known)), 4)} if known else {})


def text_of(answer: Extract) -> str:
    return "\n".join(answer.sentences[at].text for at in answer.chosen)


def support_f1(found: Found, weights: AnswerWeights) -> float:
    answer, hits = found.answer(weights), found.hits
    given = {
        (hits[each.hit].title, place_in_document(hits[each.hit], each.place))
        for each, likely in zip(answer.sentences, answer.likely[:, 1], strict=True)
        if likely >= SUPPORT_FROM
    }
    return 2 * len(given & found.labels.by_title) / (len(given) + len(found.labels.by_title))


async def main() -> None:
    options = _options()
    dirs = [opened(each) for each in options.data_dir]
    training = [found for name in options.train for found in await Source.of(name, dirs).found(options.only)]
    say(f"{len(training)} questions, {sum(found.complete for found in training)} with all relevant documents found")
    weights = AnswerWeights(fit_forest([rows_of(found) for found in training]), 0.0, np.zeros(len(SIGNS)))
    report: dict[str, Any] = {}
    if options.refusal:
        sources = [Source.of(name, dirs) for name in options.refusal]
        every = [(source, await source.found(options.only)) for source in sources]
        rows = {each.name: judged(found, await strangers_to(each, every), weights) for each, found in every}
        report["refused: [answerable, not, strangers]"] = left_out(weights, rows)
        weights = fit_refusal(weights, list(rows.values()))
    for name in options.measure:
        only = options.measure_only if name in options.train else []
        report[name] = figures(await Source.of(name, dirs).found(only), weights)
    if options.out:
        arrays = dict(weights.forest._asdict())
        arrays |= {"intercept": np.array([weights.intercept], np.float32), "signs": weights.signs.astype(np.float32)}
        metadata = {"features": " ".join(FEATURES), "signs": " ".join(SIGNS), "trained_on": options.trained_on}
        save_file(arrays, options.out, metadata)
        say(f"{options.out}: {options.out.stat().st_size:,} bytes")
    print(json.dumps(report))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, nargs="+", required=True)
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--refusal", nargs="*", default=[])
    parser.add_argument("--measure", nargs="*", default=[])
    parser.add_argument("--measure-only", nargs="*", default=[])
    parser.add_argument("--out", type=Path, help=f"Such as {WEIGHTS.name}.")
    parser.add_argument("--trained-on", default="", help="The data and their licences, kept in the file.")
    return parser.parse_args()


if __name__ == "__main__":
    asyncio.run(main())
