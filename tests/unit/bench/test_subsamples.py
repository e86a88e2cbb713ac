"""Small collections, with questions that they answer and questions that they do not."""

import gzip
from pathlib import Path

import msgspec

from query_api.evaluation.datasets import LabelledCollection, LabelledDocument, Question, read_folder
from tests.bench.subsamples import articles, samples, write

TOPICS = ("weir", "mill", "heron", "otter", "sluice", "barge")


def labelled(count: int) -> LabelledCollection:
    """Question number n is answered by document number n alone."""
    numbers = range(count)
    return LabelledCollection(
        name="rivers",
        split="dev",
        documents=tuple(LabelledDocument(id=f"d{n}", text=f"The {TOPICS[n % 6]} of village{n}.") for n in numbers),
        questions=tuple(Question(id=f"q{n}", text=f"Where is the {TOPICS[n % 6]} of village{n}?") for n in numbers),
        judgements={f"q{n}": {f"d{n}": 1} for n in numbers},
    )


def test_left_out_questions_are_answered_by_no_document(tmp_path: Path) -> None:
    cut = list(samples(labelled(60), 10, 3, left_out=0.5))
    assert [len(each.documents) for each in cut] == [10, 10, 10]
    for each in cut:
        kept = {document.id for document in each.documents}
        assert len(each.questions) == 4
        assert len(each.unanswered) == 2
        assert all(f"d{question.id[1:]}" in kept for question in each.questions)
        assert all(f"d{question.id[1:]}" not in kept for question in each.unanswered)
        assert read_folder(write(each, tmp_path)).unanswered == each.unanswered


def test_sample_without_left_out_has_answered_questions_alone() -> None:
    assert [each.unanswered for each in samples(labelled(60), 20, 2)] == [(), ()]


def test_first_left_out_question_is_near_to_the_documents() -> None:
    [cut] = samples(labelled(60), 10, 1, left_out=0.5)
    words = {word for document in cut.documents for word in (document.text or "").strip(".").split()}
    assert cut.unanswered[0].text.split()[3] in words


def test_articles_are_asked_for_with_and_without_a_title(tmp_path: Path) -> None:
    file = tmp_path / "rivers" / "leads.jsonl.gz"
    file.parent.mkdir()
    lines = [{"_id": f"a{n}", "title": f"Weir {n}", "text": f"Weir {n} is a weir. It is old."} for n in range(9)]
    with gzip.open(file, "wb") as written:
        written.write(b"\n".join(map(msgspec.json.encode, lines)))
    found = articles(file)
    titles = [document.title for document in found.documents]
    assert (found.name, len(found.questions)) == ("rivers", 9)
    assert sum(title is None for title in titles) == sum("Weir" in (title or "") for title in titles) == 3
    by_id = {document.id: document.text or "" for document in found.documents}
    for question in found.questions:
        [holder] = found.judgements[question.id]
        assert f"Weir {question.id[1:]} is a weir." in by_id[holder]
    assert {"explain", "what"} <= {question.text.split()[0] for question in found.questions}
