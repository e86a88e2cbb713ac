"""A labelled folder of a graph measured by what its files are: mentions, typed relations, or categories."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from query_api.evaluation.category_communities import articles_of, community_report, prepared_articles, read_lines
from query_api.evaluation.graph_runner import Extract, measure, rule_mentions, show_figures
from query_api.evaluation.labelled_graphs import LabelledGraph, read_graphs
from query_api.evaluation.trained_parts import tagger_trained_on
from query_api.evaluation.typed_relations import files_of, final_texts, labelled_relations, relation_report
from schemas.errors import WrongSetting
from schemas.progress_bars import Bars

if TYPE_CHECKING:
    from rich.console import Console

Report = dict[str, Any]


def plan_folder(
    folder: Path, split: str | None, limit: int | None, extract: Callable[[], Extract]
) -> Callable[[Bars], Report]:
    """Reads the folder's labels; what is returned measures it. `extract` is called for labelled mentions alone.

    Raises WrongSetting where the folder, or an option for it, is wrong.
    """
    relations, articles = files_of(folder), articles_of(folder)
    if relations is None and articles is None:
        chosen, graphs = read_graphs(folder, split)
        return lambda bars: _mentions_report(folder.resolve().name, chosen, graphs[:limit], extract(), bars)
    if split is not None:
        raise WrongSetting(f"{folder} has no splits: leave --split out.")
    if relations is not None:
        if limit is not None:
            raise WrongSetting(f"The labels of {folder} are of all its documents: leave --limit out.")
        texts, labelled = final_texts(relations[0]), labelled_relations(relations[1])
        return lambda bars: relation_report(texts, labelled, bars(f"Extract {folder.name}", len(texts)).advance)
    lines = read_lines(articles, limit) if articles is not None else []
    return lambda bars: community_report(prepared_articles(lines, bars(f"Extract {folder.name}", len(lines)).advance))


def _mentions_report(folder: str, split: str, graphs: Sequence[LabelledGraph], extract: Extract, bars: Bars) -> Report:
    """Where the tagger was trained on these documents, `tagger_trained_on` says so."""
    report = measure(split, graphs, extract, bars).report()
    trained_on = None if extract is rule_mentions else tagger_trained_on(folder, split)
    return report if trained_on is None else report | {"tagger_trained_on": trained_on}


def show_report(console: "Console", name: str, report: Mapping[str, Any]) -> None:
    """A report as tables."""
    if "split" in report:
        show_figures(console, name, report)
        return
    console.print(f"{name}: {report['documents']:,} documents")
    if "relation_f1" in report:
        table = Table("relation", "F1", "precision", "recall", "labelled", "found")
        for title, figures in [("all", report["relation"]), *report["by_relation"].items()]:
            shares = (f"{figures[key]:.3f}" for key in ("f1", "precision", "recall"))
            table.add_row(title, *shares, f"{figures['labelled']:,}", f"{figures['found']:,}")
    else:
        table = Table("level", "modularity", "NMI with categories", "NMI of links alone")
        for level, figures in report["by_level"].items():
            table.add_row(level, *(f"{figures[key]:.3f}" for key in ("modularity", "nmi", "nmi_links")))
    console.print(table)
