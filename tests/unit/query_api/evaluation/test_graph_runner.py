"""What the extraction finds in made-up documents, mapped to their labels and measured."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from indexer.documents import PreparedDocument
from query_api.evaluation.graph_runner import (
    FoundMention,
    entities_of,
    labelled_offsets,
    measure,
    prepared_from,
    rule_mentions,
)
from query_api.evaluation.labelled_graphs import LabelledGraph, read_graphs
from schemas.ids import normalise_name
from schemas.progress_bars import Bar
from tests.unit.query_api.evaluation.labelled import DOCUMENT, SENTENCE, write_lines


@pytest.fixture
def graph(tmp_path: Path) -> LabelledGraph:
    return read_graphs(write_lines(tmp_path / "dev.jsonl", DOCUMENT))[1][0]


def finding(*names: tuple[str, str]) -> Callable[[LabelledGraph, PreparedDocument], Sequence[FoundMention]]:
    """An extraction that finds the first place of each name."""

    def extract(graph: LabelledGraph, _prepared: PreparedDocument) -> Sequence[FoundMention]:
        starts = [(graph.text.index(name), name, kind) for name, kind in names]
        return [FoundMention(start, start + len(name), kind, normalise_name(name), 0) for start, name, kind in starts]

    return extract


def test_offsets_count_what_is_no_blank(graph: LabelledGraph) -> None:
    """The text has a no-break space as a token of its own; the parser makes one blank of the three."""
    prepared = prepared_from(graph)
    canonical = prepared.chunked.chunks[0].text
    offsets = labelled_offsets(graph.text, prepared)
    assert canonical != graph.text
    assert offsets[canonical.index("Novosibirsk")] == graph.text.index("Novosibirsk")


def test_rules_find_names_where_they_stand(graph: LabelledGraph) -> None:
    found = {graph.text[each.start : each.end]: each.kind for each in rule_mentions(graph, prepared_from(graph))}
    assert found["Anna Petrova"] == "PER"
    assert found["Heron Club"] == "ORG"
    assert "Petrova" not in found  # it stands in another one


def test_figures_worked_by_hand(graph: LabelledGraph) -> None:
    """Four of five spans, three of them with their type, and one that is none. Of three pairs the first is in one
    sentence, the second lacks the club, and so does the third."""
    extract = finding(
        ("Anna Petrova", "PER"), ("Novosibirsk", "LOC"), ("Omsk", "ORG"), ("Peter Holt", "PER"), ("club", "MISC")
    )
    named = graph._replace(text=graph.text.replace("Heron Club", "Heron club"), title="A page")
    report = measure("dev", [named], extract, Bar).report()
    assert report["mention_span"] | {} == {
        "precision": 0.8,
        "recall": 0.8,
        "f1": 0.8,
        "right": 4,
        "found": 5,
        "labelled": 5,
    }
    assert report["mention_typed_f1"] == 0.6
    assert report["by_type"]["LOC"] == {
        "precision": 1,
        "recall": 0.5,
        "f1": 0.666667,
        "right": 1,
        "found": 1,
        "labelled": 2,
    }
    assert report["entity_b3_f1"] == 1
    assert report["relation"] == {"joined": 1, "labelled": 3}


def test_what_the_document_is_about_is_joined_to_all_it_mentions(graph: LabelledGraph) -> None:
    related = graph._replace(relations=[(0, 2), (1, 2)])
    report = measure("dev", [related], finding(("Omsk", "LOC")), Bar).report()
    assert report["relation"] == {"joined": 1, "labelled": 2}


def test_sentences_are_scored_by_span_and_domain(tmp_path: Path) -> None:
    graphs = read_graphs(write_lines(tmp_path / "birds.dev.jsonl", SENTENCE))[1]
    fish = graphs[0]._replace(domain="fish")
    report = measure("dev", [*graphs, fish], finding(("Grey Heron", "PER")), Bar).report()
    assert report["by_domain"]["birds"]["f1"] == pytest.approx(2 / 3, abs=1e-6)
    assert report["mention_span_f1"] == pytest.approx(2 / 3, abs=1e-6)
    assert "mention_typed_f1" not in report


def test_mentions_of_equal_names_are_one_entity() -> None:
    mentions = [
        FoundMention(0, 4, "LOC", "omsk", 0),
        FoundMention(9, 13, "ORG", "omsk", 0),
        FoundMention(5, 8, "PER", "ann", 0),
    ]
    one, same, other = entities_of(mentions)
    assert one == same != other
