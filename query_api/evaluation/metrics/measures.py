"""How good a ranking is: the measures of the literature, per question, by ir-measures (trec_eval's own arithmetic).

- `P@k`, `R@k`: relevant ones among the first k, as a share of k and of all relevant ones.
- `nDCG@k`: gain discounted by log2(rank + 1) over that of the best order; the gain is the grade itself (Järvelin and
  Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques", as trec_eval computes it).
- `MRR@k`: 1 / rank of the first relevant one, 0 beyond k (Voorhees 1999, "The TREC-8 Question Answering Track Report").
- `MAP@k`: precision at the rank of each relevant one, over all relevant ones (Buckley and Voorhees 2000, "Evaluating
  evaluation measure stability").
- `AllGold@k`: 1 where every relevant one is among the first k, else 0: what a question over several documents needs.
"""

from collections.abc import Mapping, Sequence

from ir_measures import AP, RR, Measure, P, R, iter_calc, nDCG

CUTOFFS = (1, 3, 5, 10)


def measure_names(k: int) -> list[str]:
    """The names of what is measured on rankings of `k` hits, in the order of reports."""
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= k]
    names = [f"{name}@{cutoff}" for name in ("nDCG", "R", "P", "AllGold") for cutoff in cutoffs]
    return [*names, f"MRR@{k}", f"MAP@{k}"]


def judge(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Mapping[str, int]], k: int
) -> dict[str, list[float]]:
    """{measure: a value for each question of `rankings`, in its order}.

    `rankings` is {question id: the document of each hit, best first}; order counts, not scores, so ties are the
    service's. In a ranking of passages a document can come several times: each hit keeps its rank, the first counts as
    the document found, and for precision every passage of a relevant document is a relevant passage.
    """
    questions = list(rankings)
    relevant = {question: dict(judgements[question]) for question in questions}
    named = {question: _distinct(documents[:k]) for question, documents in rankings.items()}
    run = {
        question: {name: float(len(names) - rank) for rank, name in enumerate(names)}
        for question, names in named.items()
    }
    by_passage = {
        question: relevant[question]
        | {name: relevant[question].get(document, 0) for name, document in zip(names, rankings[question], strict=False)}
        for question, names in named.items()
    }
    cutoffs = [cutoff for cutoff in CUTOFFS if cutoff <= k]
    finding: dict[str, Measure] = {f"{m}@{cutoff}": m @ cutoff for m in (nDCG, R) for cutoff in cutoffs}
    finding |= {f"MRR@{k}": RR @ k, f"MAP@{k}": AP @ k}
    values = _calculated(finding, relevant, run, questions)
    values |= _calculated({f"P@{cutoff}": P @ cutoff for cutoff in cutoffs}, by_passage, run, questions)
    values |= {f"AllGold@{cutoff}": [float(recall >= 1) for recall in values[f"R@{cutoff}"]] for cutoff in cutoffs}
    return {name: values[name] for name in measure_names(k)}


def _distinct(documents: Sequence[str]) -> list[str]:
    """A name for each hit: the document's id, and for its further hits one that no id can be."""
    seen: dict[str, int] = {}
    names = []
    for document in documents:
        seen[document] = seen.get(document, 0) + 1
        names.append(document if seen[document] == 1 else f"{document}\n{seen[document]}")
    return names


def _calculated(
    measures: Mapping[str, Measure],
    judgements: Mapping[str, Mapping[str, int]],
    run: Mapping[str, Mapping[str, float]],
    questions: Sequence[str],
) -> dict[str, list[float]]:
    names = {measure: name for name, measure in measures.items()}
    found = {name: dict.fromkeys(questions, 0.0) for name in measures}
    for metric in iter_calc(list(names), judgements, run):
        found[names[metric.measure]][metric.query_id] = metric.value
    return {name: list(values.values()) for name, values in found.items()}
