"""Folders are read as they are, or refused with a sentence that says what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from query_api.evaluation.datasets import Question, read_folder, read_questions, spread_out
from schemas.errors import Exit, WrongSetting
from tests.unit.query_api.evaluation.folders import CORPUS, QUERIES, write_folder


@pytest.mark.parametrize("compressed", [True, False])
def test_a_folder_is_read_plain_or_compressed(tmp_path: Path, compressed: bool) -> None:
    found = read_folder(write_folder(tmp_path / "birds", compressed=compressed))
    assert (found.name, found.split) == ("birds", "dev")
    assert [document.id for document in found.documents] == ["d1", "d2", "d3"]
    assert found.documents[0].metadata == {"year": 1958}
    assert found.judgements == {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 2}}
    assert [question.id for question in found.questions] == ["q1", "q2"], "a question without a judgement is not asked"


def test_a_document_without_text_is_its_title_and_one_without_a_title_too_is_empty(tmp_path: Path) -> None:
    corpus = [*CORPUS, {"_id": "d4", "title": " ", "text": None}, {"_id": "d5"}]
    found = read_folder(write_folder(tmp_path, corpus=corpus))
    assert [document.is_empty for document in found.documents] == [False, False, False, True, True]
    assert [document.is_title_only for document in found.documents] == [False, False, True, False, False]


def test_the_split_is_the_named_one_else_dev_else_the_only_one(tmp_path: Path) -> None:
    write_folder(tmp_path, split="test")
    assert read_folder(tmp_path).split == "test"
    write_folder(tmp_path, split="dev")
    assert read_folder(tmp_path).split == "dev"
    assert read_folder(tmp_path, "test").split == "test"
    with pytest.raises(WrongSetting, match=r"no train\.tsv; choose one with --split: dev, test"):
        read_folder(tmp_path, "train")


def test_questions_of_loaded_documents_need_no_corpus(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "corpus.jsonl").unlink()
    found = read_questions(tmp_path)
    assert (found.documents, found.judgements) == ((), {"q1": {"d1": 1, "d2": 0}, "q2": {"d2": 2}})


@pytest.mark.parametrize("header", ["", "question\tdocuments\n"])
def test_questions_may_be_lines_with_ids(tmp_path: Path, header: str) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text(f"{header}Who sings?\tbirds/a.md, birds/b.md\nWho swims?\t\n\nWhere?\td1\n", encoding="utf-8")
    found = read_questions(file)
    assert [question.text for question in found.questions] == ["Who sings?", "Where?"]
    assert [question.text for question in found.unanswered] == ["Who swims?"]
    assert [found.judgements[each.id] for each in found.questions] == [{"birds/a.md": 1, "birds/b.md": 1}, {"d1": 1}]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (b"Who sings?", "line 1: write the question, a tab, and the ids"),
        (b"Who?\td1\n\td2", "line 2: write the question, a tab, and the ids"),
        (b"Who?\td1\nW\xe9?\td1", "line 2: it is not UTF-8"),
        (b"Who?\t\n", "names no relevant document"),
        (b"", "names no relevant document"),
    ],
)
def test_questions_that_cannot_be_read_are_refused(tmp_path: Path, lines: bytes, sentence: str) -> None:
    file = tmp_path / "mine.tsv"
    file.write_bytes(lines)
    with pytest.raises(WrongSetting, match=sentence):
        read_questions(file)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def append(name: str, line: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write(line + "\n")

    return change


BROKEN = [
    (remove("corpus.jsonl"), r"holds no corpus\.jsonl\.gz and no corpus\.jsonl; put one there"),
    (remove("queries.jsonl"), r"holds no queries\.jsonl\.gz"),
    (remove("qrels/dev.tsv"), r"holds no judgements; put a <split>\.tsv there"),
    (append("corpus.jsonl", '{"_id": "d1", "text": "again"}'), "line 4: the id 'd1' is on line 1 already"),
    (append("queries.jsonl", '{"_id": "q2", "text": "again"}'), "line 4: the id 'q2' is on line 2 already"),
    (append("queries.jsonl", '{"_id": "q9", "text": "  "}'), "the question 'q9' has no text"),
    (append("corpus.jsonl", '{"title": "no id"}'), r"corpus\.jsonl, line 4: .*_id.* Repair the line"),
    (append("corpus.jsonl", "{"), r"corpus\.jsonl, line 4: .* Repair the line"),
    (append("qrels/dev.tsv", "q1\td9\t1"), "a judgement for the document 'd9', which corpus.jsonl does not hold"),
    (append("qrels/dev.tsv", "q9\td1\t1"), "a judgement for the question 'q9', which queries.jsonl does not hold"),
    (append("qrels/dev.tsv", "q1\td1\tyes"), "line 5: .* is not query-id, corpus-id and a whole number"),
    (append("qrels/dev.tsv", "q1\td1"), "line 5: .* is not query-id, corpus-id and a whole number"),
    (append("qrels/dev.tsv", "q1\td1\t0"), "'d1' is judged twice, and differently, for 'q1'"),
]


@pytest.mark.parametrize(("breaks", "message"), BROKEN)
def test_a_broken_folder_is_refused(tmp_path: Path, breaks: Callable[[Path], None], message: str) -> None:
    write_folder(tmp_path)
    breaks(tmp_path)
    with pytest.raises(WrongSetting, match=message) as caught:
        read_folder(tmp_path)
    assert caught.value.exit_code == Exit.USAGE


def test_no_question_with_a_judgement_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongSetting, match="names no relevant document for any question"):
        read_folder(write_folder(tmp_path, judged=[("q1", "d2", "0")]))


def test_a_header_that_is_none_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / "qrels" / "dev.tsv").write_text("q1\t0\td1\t1\n")
    with pytest.raises(WrongSetting, match="its first line must be query-id <tab> corpus-id <tab> score"):
        read_folder(tmp_path)


def test_a_folder_that_is_none_and_a_file_that_is_cut_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongSetting, match="There is no folder"):
        read_folder(tmp_path / "nowhere")
    write_folder(tmp_path, compressed=True)
    whole = (tmp_path / "corpus.jsonl.gz").read_bytes()
    (tmp_path / "corpus.jsonl.gz").write_bytes(whole[:-12])
    with pytest.raises(WrongSetting, match="is not a whole gzip file"):
        read_folder(tmp_path)
    write_folder(tmp_path / "empty", queries=QUERIES)
    (tmp_path / "empty" / "corpus.jsonl").write_text("\n")
    with pytest.raises(WrongSetting, match="is empty"):
        read_folder(tmp_path / "empty")


def test_fewer_questions_are_spread_over_the_file() -> None:
    questions = tuple(Question(id=str(number), text="?") for number in range(10))
    assert [question.id for question in spread_out(questions, 3)] == ["0", "3", "6"]
    assert spread_out(questions, None) == spread_out(questions, 10) == spread_out(questions, 99) == questions
