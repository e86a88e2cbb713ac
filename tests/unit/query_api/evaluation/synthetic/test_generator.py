"""Questions of each kind from six made-up proposals, held against what they promise."""

from pathlib import Path

import pytest

from query_api.evaluation.datasets import read_folder
from query_api.evaluation.synthetic.generator import QuestionSet, generate_questions, parse_kinds, write_folder
from query_api.evaluation.synthetic.multi_hop import descriptive_title
from query_api.evaluation.synthetic.source import IndexedDocument, read_collection, words
from schemas.errors import Failure, WrongSetting
from schemas.progress_bars import Bar
from tests.unit.query_api.evaluation.synthetic.pretend_collection import COLLECTION, proposals


@pytest.fixture
def documents() -> tuple[IndexedDocument, ...]:
    return read_collection(proposals(), COLLECTION, Bar)


def of(documents: tuple[IndexedDocument, ...], kind: str, seed: int = 1) -> QuestionSet:
    return generate_questions(COLLECTION, documents, [kind], 20, seed)


def text_of(documents: tuple[IndexedDocument, ...], name: str) -> str:
    return next(each.text for each in documents if each.id == name)


def test_an_exact_phrase_stands_in_its_document_and_in_no_other(documents: tuple[IndexedDocument, ...]) -> None:
    for made in of(documents, "exact").made:
        holding = [each.id for each in documents if made.text in " ".join(words_and_numbers(each))]
        assert holding == list(made.gold)


def words_and_numbers(document: IndexedDocument) -> list[str]:
    import re

    return re.findall(r"\w+", f"{document.title} {document.text}".lower())


def test_a_paraphrase_names_no_word_of_the_title_and_is_not_in_the_order_of_the_text(
    documents: tuple[IndexedDocument, ...],
) -> None:
    made = of(documents, "semantic").made
    assert made
    for each in made:
        [answer] = each.gold
        title = next(document.title for document in documents if document.id == answer)
        assert not set(each.text.split()) & set(words(title))
        assert each.text not in text_of(documents, answer).lower()


def test_values_leave_at_most_five_documents_and_all_of_them_are_gold(documents: tuple[IndexedDocument, ...]) -> None:
    made = of(documents, "structured").made
    assert made
    for each in made:
        assert 1 <= len(each.gold) <= 5
    drafts = [each for each in made if "Draft" in each.text and "author" not in each.text]
    assert all(set(each.gold) <= {"n4.md", "n5.md", "n6.md"} for each in drafts)


def test_a_date_decides_between_documents_about_the_same(documents: tuple[IndexedDocument, ...]) -> None:
    """Only lamps are in two titles, of 1991 and 1995: no other word needs its date."""
    made = [each for seed in range(4) for each in of(documents, "temporal", seed).made]
    assert made
    for each in made:
        assert "lamps" in each.text
        assert set(each.gold) in ({"n1.md"}, {"n5.md"})


def test_a_hop_has_one_path_and_does_not_name_where_it_ends(documents: tuple[IndexedDocument, ...]) -> None:
    made = of(documents, "multi-hop").made
    paths = {(each.path[0].source, each.path[0].edge, each.path[0].target) for each in made}
    assert paths == {("n2.md", "replaces", "n1.md"), ("n4.md", "links_to", "n3.md")}
    for each in made:
        assert list(each.gold) == [each.path[-1].target], "the end alone is gold"
    [relation] = [each for each in made if each.path[0].edge == "replaces"]
    assert "“Electric light”" in relation.text
    assert not {"lamps", "garden"} & set(words(relation.text))
    [link] = [each for each in made if each.path[0].edge == "links_to"]
    assert "falling into ___ when" in link.text
    assert not {"duck", "pond"} & set(words(link.text))


def test_a_title_that_is_quoted_where_the_path_ends_is_no_hop(documents: tuple[IndexedDocument, ...]) -> None:
    proposals_ = proposals()
    proposals_.kept["n1.md"].text += " It gave way to Electric light."
    read = read_collection(proposals_, COLLECTION, Bar)
    assert {each.path[0].edge for each in of(read, "multi-hop").made} == {"links_to"}


def test_a_title_is_described_without_the_name_it_begins_with(documents: tuple[IndexedDocument, ...]) -> None:
    assert descriptive_title(documents[0]) == "Garden lamps"


def test_the_same_seed_gives_the_same_bytes_and_another_another_set(
    documents: tuple[IndexedDocument, ...], tmp_path: Path
) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        write_folder(generate_questions(COLLECTION, documents, parse_kinds(""), 3, seed), tmp_path / name)
    one, same, other = (
        [file.read_bytes() for file in sorted((tmp_path / name).rglob("*.*")) if file.is_file()]
        for name in ("one", "same", "other")
    )
    assert one == same
    assert one != other


def test_the_folder_is_one_that_is_read_and_is_not_written_over(
    documents: tuple[IndexedDocument, ...], tmp_path: Path
) -> None:
    made = generate_questions(COLLECTION, documents, ["multi-hop"], 5, 1)
    write_folder(made, tmp_path)
    read = read_folder(tmp_path)
    assert len(read.documents) == 6
    assert {question.text for question in read.questions} == {each.text for each in made.made}
    first = read.questions[0].metadata
    assert first is not None
    assert first["kind"] == "multi-hop"
    assert set(first["path"][0]) == {"from", "edge", "to", "evidence"}
    with pytest.raises(WrongSetting, match="holds labelled questions already"):
        write_folder(made, tmp_path)


def test_a_kind_that_is_none_and_a_collection_that_gives_nothing_are_told(
    documents: tuple[IndexedDocument, ...],
) -> None:
    with pytest.raises(WrongSetting, match="no kind of question 'magic'; choose --kinds from exact"):
        parse_kinds("exact,magic")
    with pytest.raises(Failure, match="gives no question of these kinds"):
        generate_questions(COLLECTION, documents[2:3], ["multi-hop"], 5, 1)
