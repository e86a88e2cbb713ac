"""docs/measured.md and the measured blocks of docs/ranking.md: `python -m tests.measured_results [FILE.json …]`.

The files are reports of `thalweg evaluate --out` and of `python -m tests.bench.ablation --out`. What the pages show is
kept beside them in measured.json, without questions and documents, and nowhere else, so the pages cannot differ and a
test can make them again; without files that is all that happens. What is kept stays until a report has it again. How
confidence is calibrated on what it was fitted to comes from its own file: there each collection was left out in turn.
"""

import argparse
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from query_api.evaluation.approaches import APPROACHES
from query_api.evaluation.report import NON_INFERIORITY_MARGIN
from query_api.evaluation.trained_parts import confidence_fitted_to
from query_api.retrieval import confidence
from tests.bench.ablation import PARTS, WHOLE, WITHOUT, against_best, gain_of

PAGE = Path(__file__).parents[1] / "docs" / "measured.md"
RANKING = PAGE.with_name("ranking.md")
KEPT = PAGE.with_suffix(".json")
FITTED = Path(confidence.__file__).with_name(confidence.FILE)
MEASURES = ("nDCG@10", "R@5", "AllGold@5", "MRR@10")
COMPARED = "R@5"
LAW = ("nDCG@10", "R@5")
SMALL = 1_000  # documents
SMALL_MEASURES = ("P@1", "nDCG@10")
FOLDER = "folder-"
SAMPLE = re.compile(r"(.+-\d+)-\d+")

HEAD = """# Measured

Written by `python -m tests.measured_results FILE.json …`, together with the measured parts of [ranking.md](ranking.md),
from reports of `thalweg evaluate --out` and `python -m tests.bench.ablation --out`; not by hand.

## Collections

In percent: the mean over the questions with its 95 % bootstrap interval. *p50* is the median answer in milliseconds as
it came to a client that asks one question at a time. The last column is {measure} of the first approach minus that of
this one, with the p-value of a paired randomisation test, adjusted by Holm; see [Evaluation](evaluation.md).
Questions of a kind (exact, structured, semantic, temporal, multi-hop) were made by `thalweg questions`.
"""
SMALL_HEAD = """## Small collections

The ten folders of `tests/bench/folders`, each of another kind, and small collections cut out of the large ones
(`tests/bench/subsamples.py`; all of one size together, every question counting the same), in percent. The last column
is `hybrid` minus the best of the others, bold where that is more than a point below.
"""
CONFIDENCE_HEAD = """## Confidence

By way of searching, expected calibration errors and shares of numbers that were fitted without the collection in
question; the head of `query_api/retrieval/confidence.toml` says what each row is. The shipped numbers were fitted
{fitted}, with {model}, to {left_out}: each of these was left out in turn, other collections were in no fit.
"""

Figures = dict[str, Any]


def figures_of(report: Figures, note: str) -> Iterator[Figures]:
    """What is kept of each collection of a report of `thalweg evaluate`."""
    for found in report["collections"]:
        versus = {each["theirs"]: each for each in found["comparisons"] if each["measure"] == COMPARED}
        yield {
            "name": found["name"],
            "documents": found["documents"],
            "questions": found["asked"],
            "group": report["group"],
            "made_at": report["made_at"],
            "model": report["service"]["embedding_model"],
            "note": note,
            "approaches": [
                {
                    "name": approach["name"],
                    "measures": {name: approach["measures"][name] for name in MEASURES if name in approach["measures"]},
                    "p50_seconds": approach["latencies"]["answer"]["p50"],
                    "calibration": None
                    if found["confidence_fitted_to"] or not approach["calibration"]
                    else {
                        "first": approach["first_hit_calibration"]["expected_error"],
                        "all": approach["calibration"]["expected_error"],
                    },
                    "less_than_first": _compared(versus.get(approach["name"])),
                }
                for approach in found["approaches"]
            ],
            "kinds": [
                {
                    "kind": kind["kind"],
                    "questions": kind["questions"],
                    "recall": {
                        name: measures[COMPARED]["mean"]
                        for name, measures in kind["measures"].items()
                        if COMPARED in measures
                    },
                    "best": next(
                        (
                            {"name": each["theirs"], **(_compared(each) or {})}
                            for each in kind["against_best"]
                            if each["measure"] == COMPARED
                        ),
                        None,
                    ),
                }
                for kind in found["kinds"]
            ],
            "not_offered": sorted(found["not_offered"]),
        }


def sets_of(report: Figures, note: str) -> Iterator[Figures]:
    """What is kept of each set of a report of the ablation."""
    facts = {"made_at": report["made_at"], "model": report["model"], "note": note}
    return (each | facts for each in report["sets"])


def merged(earlier: Sequence[Figures], later: Sequence[Figures]) -> list[Figures]:
    """By name; the later one of two of the same name."""
    found = {each["name"]: each for each in [*earlier, *later]}
    return [found[name] for name in sorted(found)]


def page(kept: Figures) -> str:
    """The whole of measured.md."""
    sections = [line for each in kept["collections"] for line in _section(each)]
    return "\n".join([HEAD.format(measure=COMPARED), *sections, *_small_section(kept), *_confidence_section()]) + "\n"


def with_blocks(text: str, kept: Figures) -> str:
    """The text of ranking.md with its measured blocks written again. Raises ValueError where one has no place."""
    blocks: Mapping[str, Callable[[Figures], Iterator[str]]] = {"law": law_block, "parts": parts_block}
    for name, lines in blocks.items():
        begin, end = f"<!-- {name}: written by `python -m tests.measured_results` -->\n", f"<!-- end of {name} -->"
        before, begun, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not begun or not ended:
            raise ValueError(f"{RANKING} has no block {name!r}.")
        text = before + begin + "\n" + "\n".join([*lines(kept), end]) + after
    return text


def law_block(kept: Figures) -> Iterator[str]:
    """The engine beside the best of its channels and rank fusion: large collections, then in a sentence small ones."""
    yield _row(["", "questions", *(f"{measure}, to the best other" for measure in LAW)])
    yield _row(["---", *("---:" for _ in range(len(LAW) + 1))])
    for each in kept["collections"]:
        figures = {
            approach["name"]: {name: 100 * approach["measures"][name]["mean"] for name in LAW}
            for approach in each["approaches"]
            if set(LAW) <= approach["measures"].keys()
            and (approach["name"] == WHOLE or APPROACHES[approach["name"]].baseline)
        }
        if WHOLE not in figures or len(figures) == 1:
            continue
        cells = []
        for measure in LAW:
            best, difference = against_best(figures, measure)
            cells.append(f"{figures[WHOLE][measure]:.1f}, {_points(difference)} ({best})")
        generated = " (generated)" if each["kinds"] else ""
        yield _row([each["name"] + generated, f"{each['questions']:,}", *cells])
    yield ""
    folders, samples = _small_groups(kept)
    told = [
        f"{' and '.join(f'on {_holding(groups, name)} by {name}' for name in SMALL_MEASURES)} of {len(groups)} {what}"
        for what, groups in (("folders", folders), ("groups of samples", samples))
        if groups
    ]
    if told:
        yield f"In small collections it holds {'; '.join(told)} ([figures](measured.md#small-collections))."
        yield ""


def parts_block(kept: Figures) -> Iterator[str]:
    """What the engine loses without each of its parts."""
    sets = [each for each in kept["sets"] if any(name.startswith(WITHOUT) for name in each["figures"])]
    if not sets:
        return
    names = ", ".join(f"{each['name']} ({each['questions']})" for each in sets)
    yield f"In points of the mean of nDCG@10 and R@5, over sets (and so many questions): {names}."
    yield ""
    yield _row(["part", "without it", "gain", "least", "most"])
    yield _row(["---", "---", "---:", "---:", "---:"])
    parts = [name.removeprefix(WITHOUT) for name in sets[0]["figures"] if name.startswith(WITHOUT)]
    for part in parts:
        gains = {each["name"]: gain_of(part, each["figures"]) for each in sets if WITHOUT + part in each["figures"]}
        ends = [
            f"{_signed(gains[name])} ({name})"
            for name in (min(gains, key=gains.__getitem__), max(gains, key=gains.__getitem__))
        ]
        about = (PARTS[part].__doc__ or "").rstrip(".") if part in PARTS else "This graph term weighs 0"
        yield _row([f"`{part}`", about, _signed(fmean(gains.values()), 2), *ends])
    yield ""


def _small_groups(kept: Figures) -> tuple[list[Figures], list[Figures]]:
    """The folders, and samples of one collection and size as one: means over their questions."""
    small = [each for each in kept["sets"] if each["documents"] <= SMALL]
    folders = [
        each | {"name": each["name"].removeprefix(FOLDER)} for each in small if not SAMPLE.fullmatch(each["name"])
    ]
    cut = [(match[1], each) for each in small if (match := SAMPLE.fullmatch(each["name"]))]
    cut.sort(key=lambda pair: (pair[0].rpartition("-")[0], int(pair[0].rpartition("-")[2])))
    samples = []
    for name, parts in groupby(cut, key=lambda pair: pair[0]):
        sets = [each for _, each in parts]
        questions = sum(each["questions"] for each in sets)
        figures = {
            approach: {
                measure: sum(each["questions"] * each["figures"][approach][measure] for each in sets) / questions
                for measure in of
            }
            for approach, of in sets[0]["figures"].items()
        }
        documents = round(fmean(each["documents"] for each in sets))
        samples.append({"name": name, "documents": documents, "questions": questions, "figures": figures})
    return folders, samples


def _holding(groups: Sequence[Figures], measure: str) -> int:
    return sum(not _breaks(against_best(each["figures"], measure)[1]) for each in groups)


def _small_section(kept: Figures) -> Iterator[str]:
    folders, samples = _small_groups(kept)
    measured = [each for each in kept["sets"] if each["documents"] <= SMALL]
    if not measured:
        return
    yield SMALL_HEAD
    yield f"{'; '.join(sorted({_origin(each) for each in measured}))}."
    yield ""
    names = [name for name in measured[0]["figures"] if not name.startswith(WITHOUT)]
    for measure in SMALL_MEASURES:
        yield _row([measure, "documents", "questions", *names, "to the best other"])
        yield _row(["---", *("---:" for _ in range(len(names) + 3))])
        for what, groups in (("folders", folders), ("samples", samples)):
            for each in groups:
                best, difference = against_best(each["figures"], measure)
                figures = (f"{each['figures'][name][measure]:.1f}" for name in names)
                yield _row(
                    [
                        each["name"],
                        str(each["documents"]),
                        str(each["questions"]),
                        *figures,
                        f"{_points(difference)} ({best})",
                    ]
                )
            if groups:
                means = {name: {measure: fmean(each["figures"][name][measure] for each in groups)} for name in names}
                best, difference = against_best(means, measure)
                figures = (f"{means[name][measure]:.1f}" for name in names)
                yield _row([f"*mean of {what}*", "", "", *figures, f"{_points(difference)} ({best})"])
        yield ""


def _confidence_section() -> Iterator[str]:
    fitted = tomllib.loads(FITTED.read_text(encoding="utf-8"))
    ways = {name: errors for name, errors in _tables(fitted["errors"]) if errors}
    left_out = ", ".join(fitted["collections"])
    yield CONFIDENCE_HEAD.format(fitted=fitted["fitted"], model=fitted["model"], left_out=left_out)
    yield _row(["", *ways])
    yield _row(["---", *("---:" for _ in ways)])
    for name in dict.fromkeys(name for errors in ways.values() for name in errors):
        yield _row([name, *(f"{errors[name]:.3f}" if name in errors else "" for errors in ways.values())])


def _tables(of: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, float]]]:
    """(path, numbers) of each table, whatever they are nested in."""
    yield path, {name: value for name, value in of.items() if isinstance(value, int | float)}
    for name, value in of.items():
        if isinstance(value, Mapping):
            yield from _tables(value, f"{path} {name}".strip())


def _section(of: Figures) -> Iterator[str]:
    yield f"### {of['name']}"
    yield ""
    yield f"{of['questions']:,} questions, {of['documents']:,} documents, hits by {of['group']}, {_origin(of)}."
    yield ""
    names = list(of["approaches"][0]["measures"])
    yield _row(["approach", *names, "p50", f"Δ {COMPARED}"])
    yield _row(["---", *("---:" for _ in range(len(names) + 2))])
    for approach in of["approaches"]:
        versus = approach["less_than_first"]
        yield _row(
            [
                approach["name"],
                *(_interval(approach["measures"][name]) for name in names),
                f"{1000 * approach['p50_seconds']:.1f}",
                "" if versus is None else _difference(versus),
            ]
        )
    yield ""
    if of["kinds"]:
        yield from _kinds(of)
    if confidence_fitted_to(of["name"]):
        yield "Confidence was fitted to questions of this collection: see [Confidence](#confidence)."
        yield ""
    elif calibrated := [each for each in of["approaches"] if each["calibration"] is not None]:
        errors = {each["name"]: each["calibration"] for each in calibrated}
        shown = ", ".join(f"{name} {of_name['first']:.3f} / {of_name['all']:.3f}" for name, of_name in errors.items())
        yield f"Expected calibration error, first hits / all hits: {shown}."
        yield ""
    if of["not_offered"]:
        yield f"Not offered by the service that was measured: {', '.join(of['not_offered'])}."
        yield ""


def _origin(of: Figures) -> str:
    return f"{of['model']}; {of['made_at'][:10]}{', ' if of['note'] else ''}{of['note']}"


def _kinds(of: Figures) -> Iterator[str]:
    names = list(of["kinds"][0]["recall"])
    yield _row([f"{COMPARED} by kind", "questions", *names, "first − best channel"])
    yield _row(["---", *("---:" for _ in range(len(names) + 2))])
    for kind in of["kinds"]:
        best = "" if kind["best"] is None else f"{kind['best']['name']}: {_difference(kind['best'])}"
        yield _row(
            [kind["kind"], f"{kind['questions']:,}", *(f"{100 * kind['recall'][name]:.1f}" for name in names), best]
        )
    yield ""


def _compared(each: Figures | None) -> Figures | None:
    if each is None:
        return None
    return {**{name: each["difference"][name] for name in ("mean", "low", "high")}, "p": each["adjusted_p"]}


def _interval(of: Figures) -> str:
    return f"{100 * of['mean']:.1f} [{100 * of['low']:.1f}, {100 * of['high']:.1f}]"


def _difference(of: Figures) -> str:
    p = "< 0.001" if of["p"] < 0.001 else f"{of['p']:.3f}"
    return f"{100 * of['mean']:+.1f} [{100 * of['low']:+.1f}, {100 * of['high']:+.1f}], p {p}"


def _points(difference: float) -> str:
    """Bold where it is more than the margin below."""
    shown = _signed(difference)
    return f"**{shown}**" if _breaks(difference) else shown


def _signed(value: float, decimals: int = 1) -> str:
    return f"{round(value, decimals) + 0.0:+.{decimals}f}"  # + 0.0 makes 0.0 of -0.0


def _breaks(difference: float) -> bool:
    """As it is shown, more points below than the law allows."""
    return round(difference, 1) < -100 * NON_INFERIORITY_MARGIN


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', ' ') for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="*", help="of `thalweg evaluate` or `tests.bench.ablation`")
    parser.add_argument("--note", default="", help="on what machine, at which commit: shown with each collection")
    parser.add_argument("--afresh", action="store_true", help="leave out what was measured before")
    given = parser.parse_args()
    kept = {"collections": [], "sets": []} if given.afresh else json.loads(KEPT.read_text())
    for file in given.reports:
        report = json.loads(file.read_text())
        if "sets" in report:
            kept["sets"] = merged(kept["sets"], list(sets_of(report, given.note)))
        else:
            kept["collections"] = merged(kept["collections"], list(figures_of(report, given.note)))
    KEPT.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
    PAGE.write_text(page(kept))
    RANKING.write_text(with_blocks(RANKING.read_text(), kept))


if __name__ == "__main__":
    main()
