"""The measures of rankings, and the thresholds, diversity and latencies of answers.

Measures are those of the literature, per question, by ir-measures (trec_eval's own arithmetic):

- `P@k`, `R@k`: relevant ones among the first k, as a share of k and of all relevant ones.
- `nDCG@k`: gain discounted by log2(rank + 1) over that of the best order; the gain is the grade itself (Järvelin and
  Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques", as trec_eval computes it).
- `MRR@k`: 1 / rank of the first relevant one, 0 beyond k (Voorhees 1999, "The TREC-8 Question Answering Track Report").
- `MAP@k`: precision at the rank of each relevant one, over all relevant ones (Buckley and Voorhees 2000, "Evaluating
  evaluation measure stability").
- `AllGold@k`: 1 where every relevant one is among the first k, else 0: what a question over several documents needs.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from query_api.evaluation.results import Answer, Diversity, Spread, Threshold
from schemas.errors import WrongSetting, install_extra

if TYPE_CHECKING:
    from ir_measures import Measure

CUTOFFS = (1, 3, 5, 10)
QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9)
CATEGORY_FIELDS = ("category", "categories", "topic", "topics", "tag", "tags", "type", "kind", "subject")
DATE_FIELDS = ("date", "created", "published", "year", "created_at", "published_at", "updated")

_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d{2})(?!\d)")


def require_ir_measures() -> None:
    """Raises WrongSetting where the package that measures rankings is not installed."""
    if find_spec("ir_measures") is None:
        raise WrongSetting(f"An evaluation needs the extra 'evaluate': {install_extra('evaluate')}.")


def measure_names(k: int) -> list[str]:
    """The names of the measures of rankings of `k` hits, in the order of reports."""
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= k]
    names = [f"{name}@{cutoff}" for name in ("nDCG", "R", "P", "AllGold") for cutoff in cutoffs]
    return [*names, f"MRR@{k}", f"MAP@{k}"]


def measure_rankings(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], k: int
) -> dict[str, list[float]]:
    """{measure: a value for each question of `rankings`, in its order}.

    `rankings` is {question id: the document of each hit, best first}; order counts, not scores, so ties are the
    service's. In a ranking of passages a document can come several times: each hit keeps its rank, the first counts as
    the document found, and for precision every passage of a relevant document is a relevant passage.
    """
    require_ir_measures()
    from ir_measures import AP, RR, P, R, nDCG  # an extra, and half a second

    hits = {question: _distinct(documents[:k]) for question, documents in rankings.items()}
    relevant = {question: dict(judgements[question]) for question in rankings}
    by_passage = {
        question: _grades_of_hits(relevant[question], hits[question], rankings[question]) for question in hits
    }
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= k]
    measures = {f"{m}@{cutoff}": m @ cutoff for m in (nDCG, R) for cutoff in cutoffs}
    values = _calculated(measures | {f"MRR@{k}": RR @ k, f"MAP@{k}": AP @ k}, relevant, hits)
    values |= _calculated({f"P@{cutoff}": P @ cutoff for cutoff in cutoffs}, by_passage, hits)
    values |= {f"AllGold@{cutoff}": [float(recall >= 1) for recall in values[f"R@{cutoff}"]] for cutoff in cutoffs}
    return {name: values[name] for name in measure_names(k)}


def _grades_of_hits(relevant: Mapping[str, int], hits: Sequence[str], documents: Sequence[str]) -> dict[str, int]:
    """The grades of documents, and of each hit that of its document."""
    of_hits = {name: relevant.get(document, 0) for name, document in zip(hits, documents, strict=False)}
    return {**relevant, **of_hits}


def _calculated(
    measures: Mapping[str, "Measure"], grades: Mapping[str, Mapping[str, int]], hits: Mapping[str, Sequence[str]]
) -> dict[str, list[float]]:
    """{name of the measure: a value for each question}."""
    from ir_measures import iter_calc

    name_of = {measure: name for name, measure in measures.items()}
    values = {name: dict.fromkeys(hits, 0.0) for name in measures}
    run = {
        question: {name: float(len(names) - rank) for rank, name in enumerate(names)}
        for question, names in hits.items()
    }
    for metric in iter_calc(list(name_of), grades, run):
        values[name_of[metric.measure]][metric.query_id] = metric.value
    return {name: list(of.values()) for name, of in values.items()}


def _distinct(documents: Sequence[str]) -> list[str]:
    """A name for each hit: the document's id, and for its further hits one that no id can be."""
    seen: dict[str, int] = {}
    names = []
    for document in documents:
        seen[document] = seen.get(document, 0) + 1
        names.append(document if seen[document] == 1 else f"{document}\n{seen[document]}")
    return names


def thresholds(answers: Sequence[Sequence[tuple[float, bool]]]) -> tuple[Threshold, ...]:
    """Of (score, whether the hit is relevant) of each question's hits; none where there is no hit.

    The scores of two approaches are on scales of their own, so thresholds are quantiles of the approach's own.
    """
    hits = [hit for answer in answers for hit in answer]
    if not hits:
        return ()
    relevant = sum(right for _, right in hits)

    def threshold(level: float) -> Threshold:
        shown = [right for score, right in hits if score >= level]
        unanswered = sum(not any(score >= level for score, _ in answer) for answer in answers)
        return Threshold(
            at=round(level, 6),
            kept=round(len(shown) / len(hits), 6),
            precision=round(sum(shown) / len(shown), 6),
            recall=round(sum(shown) / relevant, 6) if relevant else 0.0,
            unanswered=round(unanswered / len(answers), 6),
        )

    levels = np.quantile([score for score, _ in hits], QUANTILES, method="lower").tolist()
    return tuple(map(threshold, dict.fromkeys(levels)))


def diversity(answers: Sequence[Sequence[str]], metadata: Mapping[str, Mapping[str, Any]]) -> Diversity:
    """How much of a collection answers show: distinct documents, categories and years among the hits, as a share of the
    most that so many hits could show.

    After subtopic recall (Zhai, Cohen and Lafferty 2003, "Beyond Independent Relevance"), with a document's own
    metadata as its subtopics. `answers` are the documents of each question's hits, `metadata` is that of every document
    of the collection.
    """
    categories = {document: categories_of(fields) for document, fields in metadata.items()}
    years = {document: years_of(fields) for document, fields in metadata.items()}
    sources = {document: frozenset((document,)) for answer in answers for document in answer}
    return Diversity(
        sources=_coverage(answers, sources, None),
        categories=_coverage(answers, categories, len(frozenset().union(*categories.values()))),
        years=_coverage(answers, years, len(frozenset().union(*years.values()))),
    )


def categories_of(fields: Mapping[str, Any]) -> frozenset[str]:
    """The values of the first of CATEGORY_FIELDS that the metadata has."""
    for name in CATEGORY_FIELDS:
        value = fields.get(name)
        values = value if isinstance(value, list) else [value]
        if found := frozenset(each for each in values if isinstance(each, str) and each):
            return found
    return frozenset()


def years_of(fields: Mapping[str, Any]) -> frozenset[str]:
    """The year, of four digits, of the first of DATE_FIELDS that has one."""
    for name in DATE_FIELDS:
        value = fields.get(name)
        if isinstance(value, str | int) and not isinstance(value, bool) and (year := _YEAR.search(str(value))):
            return frozenset((year[1],))
    return frozenset()


def _coverage(
    answers: Sequence[Sequence[str]], values: Mapping[str, frozenset[str]], distinct: int | None
) -> float | None:
    """`distinct` is how many values the collection has; None where every document has one of its own."""
    if distinct == 0:
        return None
    shares = []
    for answer in filter(None, answers):
        shown = frozenset[str]().union(*(values.get(document, frozenset()) for document in answer))
        most = len(answer) if distinct is None else min(len(answer), distinct)
        shares.append(min(1.0, len(shown) / most))
    return round(sum(shares) / len(shares), 6) if shares else None


def latencies(answers: Sequence[Answer]) -> dict[str, Spread]:
    """{step: spread}: the service's steps and its `total`, then `first hit` and `answer` as they came to the client,
    the way over HTTP included."""
    by_step: dict[str, list[float]] = {}
    for answer in answers:
        for step, seconds in answer.stages.items():
            by_step.setdefault(step, []).append(seconds)
    by_step["total"] = by_step.pop("total", [])
    by_step["first hit"] = [answer.first_hit_seconds for answer in answers if answer.first_hit_seconds is not None]
    by_step["answer"] = [answer.seconds for answer in answers]
    return {step: spread(seconds) for step, seconds in by_step.items() if seconds}


def spread(seconds: Sequence[float]) -> Spread:
    """By linear interpolation (Hyndman and Fan 1996, type 7)."""
    p50, p95 = np.quantile(seconds, [0.5, 0.95])
    return Spread(len(seconds), round(float(p50), 6), round(float(p95), 6))
