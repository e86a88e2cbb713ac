"""Folders of typed relations and of classified articles, told by their files and measured; figures by hand."""

import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from query_api.evaluation.graph_folders import plan_folder, show_report
from query_api.evaluation.graph_metrics import mutual_information
from query_api.evaluation.graph_runner import rule_mentions
from schemas.errors import WrongSetting
from schemas.progress_bars import Bar
from tests.unit.query_api.evaluation.labelled import DOCUMENT, write_lines

PEP_1 = "PEP: 1\nTitle: Purpose\nAuthor: Ada Bell\nStatus: Draft\nRequires: 3\n\nAbstract\n========\n\nIt says how.\n"
EVENTS = [
    {"op": "create", "path": "peps/pep-0001.rst", "text": PEP_1},
    {"op": "create", "path": "peps/pep-0002.rst", "text": PEP_1.replace("PEP: 1", "PEP: 2")},
    {"op": "update", "path": "peps/pep-0001.rst", "text": PEP_1.replace("Draft", "Active")},
    {"op": "delete", "path": "peps/pep-0002.rst"},
]
RELATIONS = [
    ("PEP 1", "author", "Ada Bell"),
    ("PEP 1", "status", "Active"),
    ("PEP 1", "author", "Bob Reed"),
    ("PEP 1", "mentions", "PEP 9"),
]


def relations_folder(folder: Path, rows: list[tuple[str, ...]], header: str = "head\trelation\ttail") -> Path:
    folder.mkdir()
    lines = "".join(f"{json.dumps(event)}\n" for event in EVENTS)
    (folder / "events.jsonl.xz").write_bytes(lzma.compress(lines.encode()))
    table = "\n".join([header, *("\t".join(row) for row in rows)]) + "\n"
    (folder / "relations.tsv.gz").write_bytes(gzip.compress(table.encode()))
    return folder


def article(name: str, category: str, links: list[str], text: str) -> dict[str, Any]:
    return {"_id": name, "title": name, "text": text, "metadata": {"links": links, "categories": [category]}}


ARTICLES = [
    article("Heron", "Birds.Waders", ["Stork"], "Heron and Stork are birds. The Heron fishes."),
    article("Stork", "Birds.Waders", ["Heron"], "Stork and Heron are birds. The Stork nests."),
    article("Iron", "Metals", ["Copper"], "Iron and Copper are metals. Iron rusts."),
    article("Copper", "Metals", ["Iron"], "Copper and Iron are metals. Copper conducts."),
]


def measured(folder: Path, limit: int | None = None) -> dict[str, Any]:
    return plan_folder(folder, None, limit, lambda: rule_mentions)(Bar)


@pytest.mark.parametrize(("folder", "shown"), [("redocred", False), ("letters", True)])
def test_tagger_figures_are_not_shown_on_what_it_learnt(tmp_path: Path, folder: str, shown: bool) -> None:
    """The header of its weights says that it was trained on Re-DocRED dev."""
    labelled = write_lines(tmp_path / folder / "dev.jsonl", DOCUMENT)
    report = plan_folder(labelled, None, None, lambda: lambda *_: [])(Bar)
    text = io.StringIO()
    show_report(Console(file=text, width=200), folder, report)
    assert ("span and type" in text.getvalue()) is shown
    assert ("trained on these documents (Re-DocRED dev" in text.getvalue()) is not shown
    assert "tagger_trained_on" not in plan_folder(labelled, None, None, lambda: rule_mentions)(Bar)


def test_relations_of_the_final_state_are_compared(tmp_path: Path) -> None:
    report = measured(relations_folder(tmp_path / "peps", RELATIONS))
    assert report["documents"] == 1
    assert report["by_relation"]["status"]["f1"] == 1.0
    author = report["by_relation"]["author"]
    assert (author["right"], author["found"], author["labelled"]) == (1, 1, 2)
    assert (report["relation_precision"], report["relation_recall"]) == (1.0, round(2 / 3, 6))
    assert report["relation_f1"] == 0.8


def test_communities_are_compared_with_categories(tmp_path: Path) -> None:
    report = measured(write_lines(tmp_path / "articles" / "leads.jsonl.gz", *ARTICLES))
    assert report["documents"] == 4
    assert (report["community_nmi"], report["community_nmi_links"]) == (1.0, 1.0)
    assert 0 < report["community_modularity"] <= 0.5  # two communities of equal weight reach a half
    assert report["by_level"]["medium"]["nmi"] == report["community_nmi"]
    with pytest.raises(WrongSetting, match="link to none"):
        measured(tmp_path / "articles", limit=1)


def test_other_folders_are_of_labelled_mentions(tmp_path: Path) -> None:
    assert "mention_typed_f1" in measured(write_lines(tmp_path / "mentions" / "dev.jsonl", DOCUMENT))


@pytest.mark.parametrize(
    ("one", "other", "agreement"),
    [
        ([0, 0, 1, 1], [5, 5, 2, 2], 1.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], 0.0),
        ([0, 0, 1, 1], [0, 0, 0, 0], 0.0),
        ([3, 3], [4, 4], 1.0),
        ([], [], 0.0),
    ],
)
def test_mutual_information(one: list[int], other: list[int], agreement: float) -> None:
    assert mutual_information(np.array(one), np.array(other)) == pytest.approx(agreement, abs=1e-12)


def test_what_does_not_fit_a_folder_is_refused(tmp_path: Path) -> None:
    peps = relations_folder(tmp_path / "peps", RELATIONS)
    with pytest.raises(WrongSetting, match="--split"):
        plan_folder(peps, "dev", None, lambda: rule_mentions)
    with pytest.raises(WrongSetting, match="--limit"):
        plan_folder(peps, None, 3, lambda: rule_mentions)
    with pytest.raises(WrongSetting, match="columns head"):
        plan_folder(relations_folder(tmp_path / "other", [], "a\tb"), None, None, lambda: rule_mentions)
    with pytest.raises(WrongSetting, match="no articles"):
        plan_folder(write_lines(tmp_path / "none" / "leads.jsonl"), None, None, lambda: rule_mentions)
    with pytest.raises(WrongSetting, match="not an article:"):
        plan_folder(write_lines(tmp_path / "odd" / "leads.jsonl", {"a": 1}), None, None, lambda: rule_mentions)
    (peps / "events.jsonl.xz").write_bytes(b"cut")
    with pytest.raises(WrongSetting, match="not an event"):
        plan_folder(peps, None, None, lambda: rule_mentions)
