"""The report of an evaluation: its tables and sentences, as JSON, as Markdown, and as a summary for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as TerminalTable
from rich.text import Text

from query_api.evaluation.results import (
    ApproachResult,
    Calibration,
    CollectionResult,
    Comparison,
    Evaluation,
    Interval,
)

HARDEST = 10
SIGNIFICANT = 0.05
NON_INFERIORITY_MARGIN = 0.01  # how much the engine may be below the best of its channels (docs/ranking.md)


class Table(NamedTuple):
    """Plain text; the first column is a name, the others are figures: with `is_percent`, those with a decimal are
    percentages."""

    title: str
    header: list[str]
    rows: list[list[str]]
    note: str
    is_percent: bool = False


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
        is_percent=True,
    )


def intervals_table(result: CollectionResult) -> Table:
    """Of the chosen measures."""
    names = chosen_measures(result)
    rows = [[each.name, *(with_interval(each.measures[name]) for name in names)] for each in result.approaches]
    return Table("With intervals", ["approach", *names], rows, "In percent: mean [lower, upper].", is_percent=True)


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
        is_percent=True,
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
        "In percent, the last of the questions. Thresholds are at quantiles of the approach's own scores.",
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
        is_percent=True,
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


FIRST_HITS, ALL_HITS = "first hits", "all hits"


def calibrations(result: CollectionResult) -> dict[str, dict[str, Calibration]]:
    """{approach: {first hits and all hits: calibration}}, of the approaches whose hits carry a confidence; none at all
    on questions that confidence was fitted to."""
    if result.confidence_fitted_to is not None:
        return {}
    both = {
        each.name: {FIRST_HITS: each.first_hit_calibration, ALL_HITS: each.calibration} for each in result.approaches
    }
    known = {name: {of: found for of, found in parts.items() if found is not None} for name, parts in both.items()}
    return {name: parts for name, parts in known.items() if parts}


def calibration_facts(result: CollectionResult) -> list[str]:
    """Sentences: the expected calibration error of each approach, or why there is none."""
    if result.confidence_fitted_to is not None:
        learnt = f"confidence was fitted to questions of {result.confidence_fitted_to}"
        return [f"Calibration is not shown: {learnt}. docs/measured.md has that of fits without them."]
    shown = calibrations(result)
    return [_calibration_text(each, shown.get(each.name, {})) for each in result.approaches]


def _calibration_text(approach: ApproachResult, shown: Mapping[str, Calibration]) -> str:
    if not shown:
        return f"{approach.name}: not measured, since no hit carries a confidence."
    over = {FIRST_HITS: "{:,} first hits", ALL_HITS: "all {:,} hits"}
    errors = ", ".join(f"{each.expected_error:.3f} over {over[of].format(each.hits)}" for of, each in shown.items())
    left_out = approach.left_out_calibration
    learnt = "" if left_out is None else f"; {left_out.expected_error:.3f} as the evaluation's other sets would have it"
    return f"{approach.name}: expected calibration error {errors}{learnt}."


def calibration_table(result: CollectionResult) -> Table:
    """Two rows for each approach: first hits and all hits."""
    rows = [
        [
            f"{name}, {of}",
            f"{found.hits:,}",
            f"{found.expected_error:.3f}",
            _mean_percent(found, [each.confidence for each in found.bins]),
            _mean_percent(found, [each.right for each in found.bins]),
        ]
        for name, parts in calibrations(result).items()
        for of, found in parts.items()
    ]
    return Table(
        "Calibration by rank",
        ["approach", "hits", "expected error", "confidence", "relevant"],
        rows,
        "Hits with a confidence; in percent their mean confidence, and the share of them that is relevant.",
        is_percent=True,
    )


def _mean_percent(of: Calibration, shares: Sequence[float]) -> str:
    """The mean over all hits of a share of each bin."""
    return f"{100 * sum(each.hits * share for each, share in zip(of.bins, shares, strict=True)) / of.hits:.1f}"


def reliability_table(result: CollectionResult) -> Table:
    """A row for each bin of confidence that is not empty."""
    rows = [
        [f"{name}, {of}", f"{each.hits:,}", f"{100 * each.confidence:.1f}", f"{100 * each.right:.1f}"]
        for name, parts in calibrations(result).items()
        for of, found in parts.items()
        for each in found.bins
    ]
    return Table(
        "Reliability",
        ["approach", "hits", "confidence", "relevant"],
        rows,
        "In percent, by tenths of confidence: where both are equal, confidence means what it says.",
        is_percent=True,
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


SUMMARY_MEASURES = 3
NO_TERMINAL_WIDTH = 200  # characters a line, where there is no terminal
UNBOUNDED = 10_000


def as_json_text(evaluation: Evaluation) -> str:
    """Every figure, down to the documents each question got. A measure of 0 is included; nothing is left out."""
    return msgspec.json.format(msgspec.json.encode(evaluation), indent=2).decode()


def as_markdown(evaluation: Evaluation) -> str:
    """With tables of GitHub's dialect. No character of names, ids and questions is markup, be it Markdown or HTML."""
    lines = ["# Evaluation", "", _escaped(facts(evaluation))]
    for collection in evaluation.collections:
        lines += _markdown_section(collection, evaluation.level)
    return "\n".join(lines) + "\n"


def _markdown_section(result: CollectionResult, level: float) -> Iterator[str]:
    yield from ("", f"## {_escaped(result.name)}", "")
    yield _escaped(" ".join(collection_facts(result)))
    yield ""
    yield from (f"- **{_escaped(approach.name)}**: {_escaped(approach.about)}" for approach in result.approaches)
    for table in all_tables(result, level):
        yield from _markdown_table(table)
    yield from ("", "### Calibration", "")
    yield from (f"- {_escaped(sentence)}" for sentence in calibration_facts(result))
    yield from _markdown_table(calibration_table(result))
    yield from _markdown_table(hardest_table(result))


def _markdown_table(table: Table) -> Iterator[str]:
    if not table.rows:
        return
    yield from ("", f"### {_escaped(table.title)}", "")
    for row in (table.header, ["---", *("---:" for _ in table.header[1:])], *table.rows):
        yield f"| {' | '.join(_escaped(cell) for cell in row)} |"
    yield from ("", _escaped(table.note))


def _escaped(text: str) -> str:
    """On one line, with nothing in it that would end a cell or begin markup."""
    flat = " ".join(escape(text, quote=False).split())
    for character in "\\`*_[]|~":
        flat = flat.replace(character, f"\\{character}")
    return flat


def show_summary(console: Console, evaluation: Evaluation, out: Path | None) -> None:
    """A table for each collection, one line for each approach; no figure is cut, however narrow the console is."""
    narrowed = False
    for collection in evaluation.collections:
        table, whole = fitting_table(console, collection)
        narrowed |= not whole
        console.print(Text(collection.name, style="bold"))
        console.print(table, highlight=False)
        sentences = collection_facts(collection)
        if all(approach.calibration is None for approach in collection.approaches):
            sentences.append("Calibration is not measured: no hit carries a confidence.")
        else:
            sentences += calibration_facts(collection)
        for sentence in sentences:
            console.print(Text(sentence, style="dim"))
        console.print()
    console.print(Text(facts(evaluation), style="dim"))
    if narrowed:
        console.print(
            Text("There is no room for all intervals and measures: a wider terminal, --json and --out have them.")
        )
    more = f"In percent, with {evaluation.level:.0%} intervals. Name a folder with --out for comparisons and charts."
    written = f"Report: {out / 'report.html'}, with report.md and report.json beside it." if out else more
    console.print(Text(written, style="dim"))


def fitting_table(console: Console, result: CollectionResult) -> tuple[TerminalTable, bool]:
    """The fullest table that fits into the console's width, and whether it is the whole one.

    The intervals go first, the last measure's before the others; then the measures, but for the first.
    """
    names = chosen_measures(result)[:SUMMARY_MEASURES]
    whole = _summary_table(result, names, len(names))
    narrower = [
        *(_summary_table(result, names, intervals) for intervals in range(len(names) - 1, -1, -1)),
        *(_summary_table(result, names[:most], 0) for most in range(len(names) - 1, 0, -1)),
    ]
    unbounded = console.options.update(width=UNBOUNDED)
    fitting = (
        each for each in (whole, *narrower) if Measurement.get(console, unbounded, each).maximum <= console.width
    )
    table = next(fitting, narrower[-1])
    return table, table is whole


def _summary_table(result: CollectionResult, names: Sequence[str], intervals: int) -> TerminalTable:
    """The measures `names` of every approach, the first `intervals` of them with intervals, and the median latency."""
    table = TerminalTable(box=None, pad_edge=False)
    for name in ["approach", *names, "p50 ms"]:
        table.add_column(Text(name), justify="left" if name == "approach" else "right", overflow="fold")
    for approach in result.approaches:
        figures = [
            with_interval(approach.measures[name])
            if column < intervals
            else f"{100 * approach.measures[name].mean:.1f}"
            for column, name in enumerate(names)
        ]
        table.add_row(*map(Text, [approach.name, *figures, f"{1000 * approach.latencies['answer'].p50:.1f}"]))
    return table
