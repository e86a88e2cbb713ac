"""docs/measured.md and the blocks of docs/ranking.md are what their program makes of the figures kept beside them."""

import json
import re
from typing import Any

import pytest

from query_api.evaluation.trained_parts import confidence_fitted_to, same_collection, tagger_trained_on
from query_api.retrieval.confidence import fitted_calibration
from tests.measured_results import KEPT, PAGE, RANKING, figures_of, merged, page, sets_of, with_blocks

AGAIN = "run python -m tests.measured_results"
SPREAD = {"mean": 0.5, "low": 0.25, "high": 0.75}
REPORT: dict[str, Any] = {
    "group": "document",
    "made_at": "2026-11-22T07:00:00+00:00",
    "service": {"embedding_model": "words"},
    "collections": [
        {
            "name": "birds",
            "documents": 1200,
            "asked": 2,
            "not_offered": {"rerank": "No."},
            "confidence_fitted_to": None,
            "comparisons": [
                {"measure": "R@5", "ours": "hybrid", "theirs": "keyword", "difference": SPREAD, "adjusted_p": 0.0001}
            ],
            "approaches": [
                {
                    "name": name,
                    "measures": {"nDCG@10": SPREAD, "R@5": SPREAD, "P@1": SPREAD},
                    "latencies": {"answer": {"p50": 0.0123}},
                    "calibration": {"expected_error": 0.125} if name == "hybrid" else None,
                    "first_hit_calibration": {"expected_error": 0.25} if name == "hybrid" else None,
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
RANKING_PAGE = """# Ranking

<!-- law: written by `python -m tests.measured_results` -->
earlier figures
<!-- end of law -->

Parts.

<!-- parts: written by `python -m tests.measured_results` -->
<!-- end of parts -->
"""


def searched(name: str, documents: int, questions: int, **figures: float) -> dict[str, Any]:
    """A set of an ablation, every measure of an approach the same."""
    of = {
        approach.replace("_", " "): dict.fromkeys(("P@1", "nDCG@10", "R@5"), each) for approach, each in figures.items()
    }
    return {"name": name, "documents": documents, "questions": questions, "figures": of}


def kept(*sets: dict[str, Any], report: dict[str, Any] = REPORT) -> dict[str, Any]:
    ablation = {"made_at": "2026-11-26T07:00:00+00:00", "model": "words", "sets": list(sets)}
    return {"collections": list(figures_of(report, "two cores")), "sets": list(sets_of(ablation, "one core"))}


def test_both_pages_are_those_of_the_kept_figures() -> None:
    figures = json.loads(KEPT.read_text())
    assert PAGE.read_text() == page(figures), AGAIN
    assert RANKING.read_text() == with_blocks(RANKING.read_text(), figures), AGAIN


def test_no_measured_figure_stands_outside_of_the_blocks() -> None:
    by_hand = re.sub(r"<!-- (\w+): written by .*?<!-- end of \1 -->", "", RANKING.read_text(), flags=re.DOTALL)
    assert re.findall(r"\d\d\.\d", by_hand) == []


def test_a_report_becomes_tables() -> None:
    shown = page(kept())
    assert "2 questions, 1,200 documents, hits by document, words; 2026-11-22, two cores." in shown
    assert "| hybrid | 50.0 [25.0, 75.0] | 50.0 [25.0, 75.0] | 12.3 |  |" in shown
    assert "| 12.3 | +50.0 [+25.0, +75.0], p < 0.001 |" in shown
    assert "| exact | 2 | 50.0 | 50.0 | keyword: +50.0 [+25.0, +75.0], p 0.500 |" in shown
    assert "Expected calibration error, first hits / all hits: hybrid 0.250 / 0.125." in shown
    assert "Not offered by the service that was measured: rerank." in shown


def test_small_sets_are_shown_beside_the_best_other() -> None:
    """Of two samples of one size, the one of three questions counts three times."""
    sets = kept(
        searched("folder-handbook", 44, 20, hybrid=60, vector=50, keyword=61.1),
        searched("birds-50-1", 50, 1, hybrid=100, vector=40, keyword=20),
        searched("birds-50-2", 50, 3, hybrid=20, vector=40, keyword=20),
        searched("birds", 1200, 2, hybrid=1, vector=2, keyword=3),
    )
    shown = page(sets)
    assert "| handbook | 44 | 20 | 60.0 | 50.0 | 61.1 | **-1.1** (keyword) |" in shown
    assert "| birds-50 | 50 | 4 | 40.0 | 40.0 | 20.0 | +0.0 (vector) |" in shown
    assert "| birds | 1200 |" not in shown, "it is not small"
    law = with_blocks(RANKING_PAGE, sets)
    assert "| birds (generated) | 2 | 50.0, +0.0 (keyword) | 50.0, +0.0 (keyword) |" in law
    assert "on 0 by P@1 and on 0 by nDCG@10 of 1 folders; on 1 by P@1 and on 1 by nDCG@10 of 1 groups of samples" in law
    assert "earlier figures" not in law


def test_set_without_another_approach_is_in_no_law() -> None:
    alone = {**REPORT["collections"][0], "approaches": REPORT["collections"][0]["approaches"][:1], "kinds": []}
    figures = kept(report=REPORT | {"collections": [alone]})
    assert "| birds |" not in with_blocks(RANKING_PAGE, figures)
    assert "### birds" in page(figures)


def test_parts_are_shown_by_what_is_lost_without_them() -> None:
    sets = [
        searched("birds", 1200, 60, hybrid=50, vector=40, without_graph=47),
        searched("fish", 1200, 60, hybrid=50, vector=60, without_graph=51),
    ]
    shown = with_blocks(RANKING_PAGE, kept(*sets))
    assert "birds (60), fish (60)." in shown
    assert "| `graph` | The gate is shut whatever is asked | +1.00 | -1.0 (fish) | +3.0 (birds) |" in shown


def test_page_without_a_place_for_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="no block 'law'"):
        with_blocks("# Ranking\n", kept())


def test_calibration_is_shown_only_where_confidence_was_not_fitted() -> None:
    """By the names in confidence.toml, whenever a set was measured and fitted to."""
    learnt = next(iter(fitted_calibration().collections))
    found = {**REPORT["collections"][0], "name": learnt}
    shown = page(kept(report=REPORT | {"collections": [found]}))
    assert "first hits / all hits" not in shown
    assert "Confidence was fitted to questions of this collection" in shown
    sections = re.split(r"^### (.+)$", PAGE.read_text().partition("## Small")[0], flags=re.MULTILINE)
    by_name = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert any(map(confidence_fitted_to, by_name))
    for name, section in by_name.items():
        assert ("Expected calibration error" in section) <= (confidence_fitted_to(name) is None), name


def test_a_sample_and_a_corpus_hash_are_the_same_collection() -> None:
    known = ("birds", "folder-wiki")
    assert [same_collection(known, [name]) for name in ("birds-200-1", "birds-0123456789ab", "Birds")] == ["birds"] * 3
    assert [same_collection(known, [name]) for name in ("wiki", "birds-of-prey", "200-1")] == [None] * 3


def test_no_page_measures_the_tagger_on_what_it_learnt() -> None:
    """Nor does one say to: each folder that a command names is another than the header of its weights does."""
    assert tagger_trained_on("redocred", "dev") is not None
    for text in (file.read_text() for file in sorted(PAGE.parent.rglob("*.md"))):
        for folder, split in re.findall(r"evaluate graph (\w+)/?(?: --split (\w+))?", text):
            assert tagger_trained_on(folder, split or "dev") is None, folder


def test_a_collection_measured_again_takes_the_place_of_what_was_measured_before() -> None:
    assert merged([{"name": "b", "at": 1}, {"name": "a"}], [{"name": "b", "at": 2}]) == [
        {"name": "a"},
        {"name": "b", "at": 2},
    ]
