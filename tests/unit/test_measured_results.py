"""docs/measured.md is what its program makes of the figures kept beside it."""

import json

from tests.measured_results import KEPT, PAGE, figures_of, merged, page

SPREAD = {"mean": 0.5, "low": 0.25, "high": 0.75}
REPORT = {
    "group": "document",
    "made_at": "2026-11-22T07:00:00+00:00",
    "service": {"embedding_model": "words"},
    "collections": [
        {
            "name": "birds",
            "documents": 1200,
            "asked": 2,
            "not_offered": {"rerank": "No."},
            "comparisons": [
                {"measure": "R@5", "ours": "hybrid", "theirs": "keyword", "difference": SPREAD, "adjusted_p": 0.0001}
            ],
            "approaches": [
                {
                    "name": name,
                    "measures": {"R@5": SPREAD, "P@1": SPREAD},
                    "latencies": {"answer": {"p50": 0.0123}},
                    "calibration": {"expected_error": 0.125} if name == "hybrid" else None,
                }
                for name in ("hybrid", "keyword")
            ],
            "kinds": [
                {
                    "kind": "exact",
                    "questions": 2,
                    "measures": {"hybrid": {"R@5": SPREAD}, "keyword": {"R@5": SPREAD}},
                    "against_best": [{"measure": "R@5", "theirs": "keyword", "difference": SPREAD, "adjusted_p": 0.5}],
                }
            ],
        }
    ],
}


def test_the_page_is_that_of_the_kept_figures() -> None:
    assert PAGE.read_text() == page(json.loads(KEPT.read_text())), "run python -m tests.measured_results REPORT.json"


def test_a_report_becomes_tables() -> None:
    shown = page(list(figures_of(REPORT, "two cores")))
    assert "2 questions, 1,200 documents, hits by document, words; 2026-11-22, two cores." in shown
    assert "| hybrid | 50.0 [25.0, 75.0] | 12.3 |  |" in shown
    assert "| keyword | 50.0 [25.0, 75.0] | 12.3 | +50.0 [+25.0, +75.0], p < 0.001 |" in shown
    assert "| exact | 2 | 50.0 | 50.0 | keyword: +50.0 [+25.0, +75.0], p 0.500 |" in shown
    assert "Expected calibration error: hybrid 0.125." in shown
    assert "Not offered by the service that was measured: rerank." in shown


def test_a_collection_measured_anew_takes_the_place_of_what_was_measured_before() -> None:
    assert merged([{"name": "b", "at": 1}, {"name": "a"}], [{"name": "b", "at": 2}]) == [
        {"name": "a"},
        {"name": "b", "at": 2},
    ]
