"""The text of an answer with links, and annotations that say where each is."""

from typing import Any

import pytest

from query_api.answers.answer import compose, frames_of
from query_api.answers.cited_text import CitedText
from query_api.answers.sentences import TermIdf
from schemas.answers import Answer, AnswerCitation, AnswerDelta
from schemas.frames import Done
from schemas.search import SearchRequest
from tests.unit.query_api.answers.found import HITS, QUESTION, idf_of

SERVICE = "http://127.0.0.1:8420/"


def done(answer: Answer) -> Done:
    return Done(retrieval_id="r_1", hits=1, timings={}, next_offset=None, answer=answer, notes=["See also."])


def written(answer: Answer) -> CitedText:
    cited = CitedText(SERVICE)
    pieces = list(filter(None, map(cited.add, (*frames_of(answer), done(answer)))))
    assert "".join(piece.text for piece in pieces) == cited.text
    assert [each for piece in pieces for each in piece.citations] == cited.citations
    return cited


def cited_sentence(text: str, **more: Any) -> CitedText:
    source = {
        "number": 1, "text": text, "title": "River", "document_id": "notes/river 1.md", "collection": "a&b",
        "chunk_id": "c", "passage_id": "p", "hit": 1, "section": [], "start": 0, "end": len(text),
    }  # fmt: skip
    cited = CitedText(SERVICE)
    frames = [AnswerCitation.model_validate(source | more), AnswerDelta(index=0, text=f"{text} [1]", citations=[1])]
    for frame in (*frames, done(Answer(text=text))):
        cited.add(frame)
    return cited


def test_each_annotation_is_of_a_marker_that_links_to_its_source() -> None:
    answer = compose(SearchRequest(q=QUESTION, answer=True), HITS, TermIdf(idf_of(QUESTION), 5.0))
    assert len(answer.citations) > 1
    cited = written(answer)
    markers = [cited.text[each.start_index : each.end_index] for each in cited.citations]
    assert markers == [f"[{number}]({each.url})" for number, each in enumerate(cited.citations, start=1)]
    for citation in answer.citations:
        assert citation.text in cited.text
    assert cited.text.count("\nSources:\n") == 1


def test_a_document_without_an_address_is_shown_by_the_service() -> None:
    cited = cited_sentence("The river is high.")
    address = f"{SERVICE}#/documents?id=notes%2Friver+1.md&in=a%26b&passage=p"
    assert cited.text == f"The river is high. [1]({address})\n\nSources:\n\n- 1: [River]({address})"
    assert (cited.citations[0].url, cited.citations[0].title) == (address, "River")


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("https://example.org/a(b) c?x=ü#d", "https://example.org/a%28b%29%20c?x=%C3%BC#d"),
        ("https://example.org/a%20b", "https://example.org/a%20b"),
    ],
)
def test_an_address_cannot_leave_its_link(uri: str, url: str) -> None:
    assert cited_sentence("High.", uri=uri).citations[0].url == url


@pytest.mark.parametrize("uri", ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "notes/a.md", "//x"])
def test_other_addresses_than_those_of_the_web_are_not_linked(uri: str) -> None:
    assert cited_sentence("High.", uri=uri).citations[0].url.startswith(SERVICE)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See ![x](https://evil.example/?q=1).", r"See ![x]\(https://evil.example/?q=1)."),
        (r"See [x\](https://evil.example).", r"See [x\](https://evil.example)."),  # no link either
        (r"See [x\\](https://evil.example).", r"See [x\\]\(https://evil.example)."),
        ("<img src=x> a < b", r"\<img src=x> a < b"),
        (r"\\<img src=x>", r"\\\<img src=x>"),
        ("Of [1] and [2].", "Of [1] and [2]."),
    ],
)
def test_what_a_document_says_loads_and_links_nothing(said: str, shown: str) -> None:
    assert cited_sentence(said).text.startswith(f"{shown} [1]({SERVICE}")


def test_a_title_is_one_line_within_its_link() -> None:
    cited = cited_sentence("High.", title="a](http://evil.example)\n<b>")
    assert cited.text.endswith(f"- 1: [a)\\(http://evil.example) \\<b>]({cited.citations[0].url})")


def test_a_refusal_is_its_reason() -> None:
    cited = written(Answer(text="", refused=True, reason="Nothing was found."))
    assert (cited.text, cited.citations) == ("Nothing was found. See also.", [])
