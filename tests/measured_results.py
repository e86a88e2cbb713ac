"""docs/measured.md, made from reports of `thalweg evaluate`: `python -m tests.measured_results REPORT.json …`.

What the page shows is kept beside it in measured.json, without the questions and documents of the reports, so that a
test can make the page again. A collection that is in an earlier measured.json stays, unless a report has it anew.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "measured.md"
KEPT = PAGE.with_suffix(".json")
MEASURES = ("nDCG@10", "R@5", "AllGold@5", "MRR@10")
COMPARED = "R@5"

HEAD = """# Measured

Written by `python -m tests.measured_results REPORT.json …` from reports of `thalweg evaluate --out`; not by hand.

In percent: the mean over the questions with its 95 % bootstrap interval. *p50* is the median answer in milliseconds as
it came to a client that asks one question at a time. The last column is {measure} of the first approach minus that of
this one, with the p-value of a paired randomisation test, adjusted by Holm; see [Evaluation](evaluation.md).
Questions of a kind (exact, structured, semantic, temporal, multi-hop) were made by `thalweg questions`.
"""

Figures = dict[str, Any]


def figures_of(report: Figures, note: str) -> Iterator[Figures]:
    """What is kept of each collection of a report."""
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
                    "calibration": (approach["calibration"] or {}).get("expected_error"),
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
                            {"name": each["theirs"], **_compared(each)}
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


def page(collections: Sequence[Figures]) -> str:
    """The whole page."""
    return "\n".join([HEAD.format(measure=COMPARED), *(line for each in collections for line in _section(each))]) + "\n"


def merged(earlier: Sequence[Figures], later: Sequence[Figures]) -> list[Figures]:
    """By name; the later one of two of the same name."""
    found = {each["name"]: each for each in [*earlier, *later]}
    return [found[name] for name in sorted(found)]


def _section(of: Figures) -> Iterator[str]:
    yield f"## {of['name']}"
    yield ""
    yield (
        f"{of['questions']:,} questions, {of['documents']:,} documents, hits by {of['group']}, {of['model']}; "
        f"{of['made_at'][:10]}{', ' if of['note'] else ''}{of['note']}."
    )
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
    calibrated = [each for each in of["approaches"] if each["calibration"] is not None]
    if calibrated:
        shown = ", ".join(f"{each['name']} {each['calibration']:.3f}" for each in calibrated)
        yield f"Expected calibration error: {shown}."
        yield ""
    if of["not_offered"]:
        yield f"Not offered by the service that was measured: {', '.join(of['not_offered'])}."
        yield ""


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


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', ' ') for cell in cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+", help="report.json of `thalweg evaluate --out`")
    parser.add_argument("--note", default="", help="on what machine, at which commit: shown with each collection")
    parser.add_argument("--afresh", action="store_true", help="leave out what was measured before")
    given = parser.parse_args()
    later = [each for file in given.reports for each in figures_of(json.loads(file.read_text()), given.note)]
    earlier = json.loads(KEPT.read_text()) if KEPT.is_file() and not given.afresh else []
    collections = merged(earlier, later)
    PAGE.parent.mkdir(exist_ok=True)
    KEPT.write_text(json.dumps(collections, ensure_ascii=False, indent=1) + "\n")
    PAGE.write_text(page(collections))


if __name__ == "__main__":
    main()
