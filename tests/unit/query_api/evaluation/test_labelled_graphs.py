"""Both forms of lines, and what is wrong with a folder."""

from pathlib import Path

import pytest

from query_api.evaluation.labelled_graphs import LabelledMention, read_graphs
from schemas.errors import WrongSetting
from tests.unit.query_api.evaluation.labelled import DOCUMENT, SENTENCE, write_lines


def test_labels_count_characters_of_the_tokens_joined_by_blanks(tmp_path: Path) -> None:
    split, (graph,) = read_graphs(write_lines(tmp_path / "dev.jsonl.gz", DOCUMENT))
    assert (split, graph.id, graph.title) == ("dev", "d1", "Anna Petrova")
    assert [(graph.text[one.start : one.end], one.kind, one.entity) for one in graph.mentions] == [
        ("Anna Petrova", "PER", 0),
        ("Novosibirsk", "LOC", 1),
        ("Omsk", "LOC", 2),
        ("Peter Holt", "PER", 3),
        ("Heron Club", "ORG", 4),
    ]
    assert graph.relations == [(0, 1), (3, 4), (1, 4)]


def test_sentences_of_all_domains_are_read(tmp_path: Path) -> None:
    write_lines(tmp_path / "birds.dev.jsonl", SENTENCE)
    _, graphs = read_graphs(write_lines(tmp_path / "fish.dev.jsonl", SENTENCE | {"domain": "fish"}))
    assert [graph.domain for graph in graphs] == ["birds", "fish"]
    assert graphs[0].mentions[0] == LabelledMention(4, 14, "species", 0)


def test_dev_comes_before_test_unless_test_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "dev.jsonl", DOCUMENT)
    write_lines(tmp_path / "test.jsonl", DOCUMENT | {"_id": "t1"}, DOCUMENT | {"_id": "t2"})
    assert read_graphs(tmp_path)[0] == "dev"
    assert [graph.id for graph in read_graphs(tmp_path, "test")[1]] == ["t1", "t2"]


@pytest.mark.parametrize(
    ("lines", "split", "message"),
    [
        ([{"_id": "d1"}], None, "not a labelled document"),
        ([DOCUMENT | {"sents": [["One"]]}], None, "not a labelled document"),
        ([], None, "no documents"),
        ([DOCUMENT], "train", "choose another split"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(
    tmp_path: Path, lines: list[object], split: str | None, message: str
) -> None:
    with pytest.raises(WrongSetting, match=message):
        read_graphs(write_lines(tmp_path / "dev.jsonl", *lines), split)


def test_no_folder_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(WrongSetting, match="no folder"):
        read_graphs(tmp_path / "nowhere")
