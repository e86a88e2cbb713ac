"""The tables and sentences of a report, as text: what Markdown, HTML and the terminal all show."""

from typing import NamedTuple

from query_api.evaluation.results import ApproachResult, CollectionResult, Comparison, Evaluation, Interval

HARDEST = 10
SIGNIFICANT = 0.05
NON_INFERIORITY_MARGIN = 0.01  # how far the engine may be below the best of its channels (docs/ranking.md)


class Table(NamedTuple):
    """Plain text; the first column is a name, the others are figures."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str


def facts(evaluation: Evaluation) -> str:
    """One sentence: which service, and how it was searched."""
    service = evaluation.service
    pooled = f", pooled as {evaluation.pool}" if evaluation.pool else ""
    lowered = ", questions in lower case" if evaluation.lower_case else ""
    return (
        f"Thalweg {service.version}, generation {service.generation or 'none'}, "
        f"{service.embedding_model or 'no model yet'}; {evaluation.k} hits by "
        f"{evaluation.group}{pooled}{lowered}; {evaluation.made_at}."
    )


def collection_facts(result: CollectionResult) -> list[str]:
    """Sentences: what was searched, and what to keep in mind with its figures."""
    loaded = result.loaded
    origin = f"{loaded.sent:,} sent now" if loaded.sent else "all there already"
    holding = f"{loaded.documents:,} documents, {origin}, searchable after {loaded.seconds:.1f} s"
    asked = f"{result.asked:,} of {result.questions:,} questions ({result.split}), {result.documents:,} documents"
    sentences = [f"{asked}, in the collection {loaded.collection} ({holding})."]
    if result.unfilled:
        sentences.append(f"{result.unfilled:,} documents have neither text nor title and could not be found.")
    if result.title_only:
        sentences.append(f"{result.title_only:,} documents are a title without text.")
    if loaded.missing:
        shown = ", ".join(loaded.missing[:3])
        sentences.append(f"{len(loaded.missing):,} documents were published and not indexed, such as {shown}.")
    sentences += [f"{name}: not offered by this service. {reason}" for name, reason in result.not_offered.items()]
    sentences += [f"{name}: not measured. {reason}" for name, reason in result.not_measured.items()]
    if result.against_baselines:
        sentences.append(non_inferiority_text(result))
    for approach in result.approaches:
        sentences += [
            f"{approach.name}: {count:,} answers came without the {channel} channel."
            for channel, count in approach.failed_channels.items()
        ]
    return sentences


def non_inferiority_text(result: CollectionResult) -> str:
    """Whether the first approach is nowhere more than a point below the best baseline."""
    margins = result.against_baselines
    holds = all(each.difference >= -NON_INFERIORITY_MARGIN for each in margins)
    by_measure = ", ".join(f"{each.measure} {100 * each.difference:+.1f} to {each.best}" for each in margins)
    return (
        f"Non-inferiority {'holds' if holds else 'fails'}: {margins[0].ours} against the best single channel or rank "
        f"fusion, {by_measure} points."
    )


def all_tables(result: CollectionResult, level: float) -> tuple[Table, ...]:
    """Those of a report, in their order, but for the questions it ends with; empty ones have no rows."""
    return (
        measures_table(result, level),
        intervals_table(result),
        kinds_table(result),
        comparisons_table(result),
        thresholds_table(result),
        diversity_table(result),
        latency_table(result),
    )


def measures_table(result: CollectionResult, level: float) -> Table:
    first = result.approaches[0].measures
    rows = [
        [approach.name, *(f"{100 * approach.measures[name].mean:.1f}" for name in first)]
        for approach in result.approaches
    ]
    return Table(
        "Measures",
        ["approach", *first],
        rows,
        f"In percent, of all questions. The next table has intervals: {level:.0%} of the bootstrap distribution.",
    )


def intervals_table(result: CollectionResult) -> Table:
    """Of the chosen measures."""
    names = chosen_measures(result)
    rows = [[each.name, *(with_interval(each.measures[name]) for name in names)] for each in result.approaches]
    return Table("With intervals", ["approach", *names], rows, "In percent: mean [lower, upper].")


def comparisons_table(result: CollectionResult) -> Table:
    rows = [
        [
            f"{each.ours} − {each.theirs}",
            each.measure,
            _difference_text(each),
            p_text(each.difference.p),
            p_text(each.adjusted_p),
            _verdict(each),
        ]
        for each in result.comparisons
    ]
    return Table(
        "Paired comparisons",
        ["approaches", "measure", "difference", "p", "p, Holm", "verdict"],
        rows,
        "Paired, in points of percent; two-sided randomisation test (Smucker et al. 2007), adjusted by Holm for the "
        f"comparisons of a measure; the verdict holds it against {SIGNIFICANT:g}.",
    )


def kinds_table(result: CollectionResult) -> Table:
    """A row for each kind of question: R@5 of every approach, and the first one against the best single channel."""
    names = [approach.name for approach in result.approaches]
    rows = []
    for kind in result.kinds:
        measure = "R@5" if "R@5" in kind.measures[names[0]] else result.main_measure
        against = next((each for each in kind.against_best if each.measure == measure), None)
        rows.append(
            [
                f"{kind.kind} ({kind.questions:,})",
                *(f"{100 * kind.measures[name][measure].mean:.1f}" for name in names),
                ""
                if against is None
                else f"{against.theirs}: {_difference_text(against)}, p {p_text(against.difference.p)}",
            ]
        )
    return Table(
        "By kind of question",
        ["kind", *names, "against the best channel"],
        rows,
        f"R@5 in percent. Last: {names[0]} minus the single channel that is best on these very questions, in points of "
        "percent, with the p-value of the randomisation test.",
    )


def thresholds_table(result: CollectionResult) -> Table:
    rows = [
        [
            approach.name,
            f"{each.at:.4g}",
            *(f"{100 * share:.1f}" for share in (each.kept, each.precision, each.recall, each.unanswered)),
        ]
        for approach in result.approaches
        for each in approach.thresholds
    ]
    return Table(
        "Score thresholds",
        ["approach", "score of at least", "hits kept", "of them right", "right ones kept", "without a hit"],
        rows,
        "In percent, the last of the questions. Thresholds stand at quantiles of the approach's own scores.",
    )


def diversity_table(result: CollectionResult) -> Table:
    rows = [
        [approach.name, *("" if share is None else f"{100 * share:.1f}" for share in shares)]
        for approach in result.approaches
        for shares in [(approach.diversity.sources, approach.diversity.categories, approach.diversity.years)]
    ]
    return Table(
        "Diversity",
        ["approach", "documents", "categories", "years"],
        rows,
        "Distinct ones among an answer's hits, in percent of the most that so many hits could show; by the documents' "
        "metadata, empty where it has none.",
    )


def latency_table(result: CollectionResult) -> Table:
    steps = list(dict.fromkeys(step for approach in result.approaches for step in approach.latencies))
    rows = [[each.name, *(_spread_text(each, step) for step in steps)] for each in result.approaches]
    return Table(
        "Latency",
        ["approach", *steps],
        rows,
        "Milliseconds, p50 / p95. The service's own steps and its total; 'first hit' and 'answer' as they came to the "
        "client, the way over HTTP included. One question at a time.",
    )


def calibration_text(approach: ApproachResult) -> str:
    calibration = approach.calibration
    if calibration is None:
        return f"{approach.name}: not measured, since no hit carries a confidence."
    left_out = approach.left_out_calibration
    learnt = "" if left_out is None else f"; {left_out.expected_error:.3f} as the evaluation's other sets would have it"
    return (
        f"{approach.name}: expected calibration error {calibration.expected_error:.3f} over {calibration.hits:,} hits "
        f"with a confidence{learnt}."
    )


def hardest_table(result: CollectionResult) -> Table:
    """The questions the first approach does worst on, with the others beside it."""
    measure = result.main_measure
    order = sorted(
        range(result.asked), key=lambda number: (result.approaches[0].questions[number].measures[measure], number)
    )[:HARDEST]
    rows = [
        [
            result.approaches[0].questions[number].question,
            *(f"{100 * approach.questions[number].measures[measure]:.0f}" for approach in result.approaches),
        ]
        for number in order
    ]
    return Table(
        f"Hardest questions for {result.approaches[0].name}",
        ["question", *(approach.name for approach in result.approaches)],
        rows,
        f"{measure} in percent.",
    )


def chosen_measures(result: CollectionResult) -> list[str]:
    """The few measures that a summary shows: nDCG and the others at their usual depths, as far as `k` allows."""
    there = result.approaches[0].measures
    wanted = [result.main_measure, "R@5", "AllGold@5", *(name for name in there if name.startswith(("MRR", "MAP")))]
    return [name for name in wanted if name in there]


def with_interval(interval: Interval) -> str:
    return f"{100 * interval.mean:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _difference_text(each: Comparison) -> str:
    low, high = 100 * each.difference.low, 100 * each.difference.high
    return f"{100 * each.difference.mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _verdict(each: Comparison) -> str:
    if each.adjusted_p >= SIGNIFICANT:
        return "not significant"
    return f"{each.ours if each.difference.mean > 0 else each.theirs} is better"


def _spread_text(approach: ApproachResult, step: str) -> str:
    spread = approach.latencies.get(step)
    return f"{1000 * spread.p50:.1f} / {1000 * spread.p95:.1f}" if spread else ""
