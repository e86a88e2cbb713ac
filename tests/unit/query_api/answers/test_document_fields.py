"""Fields of documents that a question names: their lines, word for word."""

import pytest

from indexer.read.rows import PassageRow
from query_api.answers.answer import compose
from query_api.answers.document_fields import FieldLine, asked_line
from query_api.answers.sentences import NO_TEXTS, TermIdf, Texts
from schemas.hits import Hit
from schemas.ids import DocumentKey
from schemas.search import SearchRequest
from tests.unit.query_api.answers.found import hit, idf_of

HEADER = """PEP: 7
Title: Birds
Author: Ann Lee, Bo Ek
Status: Final
Created: 05-Jul-2001
Replaces: 3
Python-Version: 3.1"""
METADATA = {
    "author": ["Ann Lee", "Bo Ek"], "status": "Final", "created": "05-Jul-2001", "replaces": "3",
    "python_version": "3.1", "last_updated": "2024-01-02",
}  # fmt: skip
BIRDS = hit(1, "PEP 7 – Birds", HEADER, document_id="pep-0007.rst", metadata=METADATA)
OTHER = hit(2, "PEP 8 – Nests", "A nest is round. Bo Ek built it.", document_id="pep-0008.rst")


def asked(question: str, *hits: Hit) -> FieldLine | None:
    return asked_line(question, hits or (OTHER, BIRDS), NO_TEXTS.first_passage)


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Who wrote PEP 7?", "Author: Ann Lee, Bo Ek"),
        ("Who created pep7?", "Author: Ann Lee, Bo Ek"),
        ("who is the author of pep-0007", "Author: Ann Lee, Bo Ek"),
        ("When was PEP 7 created?", "Created: 05-Jul-2001"),
        ("When was PEP 7 written?", "Created: 05-Jul-2001"),
        ("What is the current status of PEP 7?", "Status: Final"),
        ("Which Python version is PEP 7 for?", "Python-Version: 3.1"),
        ("What does PEP 7 replace?", "Replaces: 3"),
    ],
)
def test_a_field_is_asked_for_by_its_name_or_by_words_that_people_use(question: str, line: str) -> None:
    found = asked(question)
    assert found is not None
    assert found.text == line
    assert found.hit.parent_text[found.start : found.end] == line


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote PEP 8?",  # has no such field
        "What replaced PEP 7?",  # the other direction
        "Why was PEP 7 created?",
        "What is the status of nests in PEP 7?",
        "Who wrote birds about PEP 7 and PEP 8?",
        "What is PEP 7?",
        "Who wrote it?",
        "When was the proposal PEP 7 last changed?",  # of front matter, which no text has
        "",
    ],
)
def test_what_asks_for_more_than_a_field_is_not_answered_by_one(question: str) -> None:
    assert asked(question) is None


def test_the_first_passage_is_read_where_no_hit_has_the_line() -> None:
    body = BIRDS.model_copy(update={"parent_text": "Birds fly.", "parent_start": 500})
    first = PassageRow("p0", DocumentKey("world", "pep-0007.rst"), "r", 0, [], 9, 9 + len(HEADER), BIRDS.title, HEADER)
    texts = Texts(lambda key: first if key.document_id == "pep-0007.rst" else None, NO_TEXTS.repeats)
    question = "Who wrote PEP 7?"
    answer = compose(SearchRequest(q=question, answer=True), [body], TermIdf(idf_of(question), 5.0), texts)
    (source,) = answer.citations
    assert (source.text, source.passage_id) == ("Author: Ann Lee, Bo Ek", "p0")
    assert HEADER[source.start - 9 : source.end - 9] == source.text


def test_what_a_title_names_may_be_asked_for_too() -> None:
    text = "Author: Ann Lee\n\nHamlet was written by Shakespeare. It is a play."
    page = hit(1, "Hamlet", text, metadata={"author": "Ann Lee"})
    question = "Who wrote Hamlet?"
    answer = compose(SearchRequest(q=question, answer=True), [page], TermIdf(idf_of(question), 5.0))
    assert [each.text for each in answer.citations][:2] == ["Author: Ann Lee", "Hamlet was written by Shakespeare."]
    assert [each.number for each in answer.citations] == [*range(1, len(answer.citations) + 1)]
    one = compose(SearchRequest(q=question, answer=True, answer_sentences=1), [page], TermIdf(idf_of(question), 5.0))
    assert len(one.citations) == 1
