"""What the caller sees of a place in the order of hits."""

from indexer.read.rows import ChunkRow, PassageRow
from indexer.schema import DocumentRow
from indexer.text_analysis import terms_of
from query_api.query.question import Question
from query_api.retrieval.fusion import Place
from query_api.retrieval.results.hits import Texts, hits_of
from schemas.hits import Hit
from schemas.ids import DocumentKey

KEY = DocumentKey("papers", "long.pdf")


def hit_at(start: int, metadata: dict[str, object]) -> Hit:
    passage = PassageRow("p", KEY, "r", 0, [], start, start + 10, "Long", "Some words.")
    chunk = ChunkRow("c", KEY, "r", 0, "p", [], start, start + 10, "Some words.")
    document = DocumentRow(KEY, None, 0, 1, 0, "r", "application/pdf", "Long", None, metadata)
    texts = Texts({"p": passage}, {"p": [chunk]}, {KEY: document})
    (hit,) = hits_of([Place("p", "c", 1.0, {}, {}, KEY)], [1], texts, Question("words"), {}, None, "documents")
    return hit


def test_a_hit_tells_its_page_and_not_where_all_pages_begin() -> None:
    pages = {"year": 1843, "page_starts": [0, 100, 200]}
    assert [hit_at(start, pages).page for start in (0, 99, 100, 250)] == [1, 1, 2, 3]
    assert hit_at(0, pages).metadata == {"year": 1843}


def test_a_hit_tells_the_page_of_the_answer_and_not_of_the_words_before_it() -> None:
    text = "A page ends here. The next begins."
    passage = PassageRow("p", KEY, "r", 0, [], 90, 90 + len(text), "Long", text)
    chunk = ChunkRow("c", KEY, "r", 0, "p", [], 97, 90 + len(text), text[7:])
    document = DocumentRow(KEY, None, 0, 1, 0, "r", "application/pdf", "Long", None, {"page_starts": [0, 108]})
    texts = Texts({"p": passage}, {"p": [chunk]}, {KEY: document})
    places = [Place("p", "c", 1.0, {}, {}, KEY)]
    pages = {}
    for word in ("next", "page", "other"):
        idf = dict.fromkeys(terms_of(word), 1.0)
        (hit,) = hits_of(places, [1], texts, Question(word), idf, None, "documents")
        assert hit.text == hit.parent_text[hit.start - hit.parent_start : hit.end - hit.parent_start]
        pages[word] = (hit.page, hit.text)
    assert pages == {"next": (2, "The next begins."), "page": (1, text), "other": (2, "The next begins.")}


def test_a_hit_in_a_format_without_pages_has_none() -> None:
    assert hit_at(0, {"year": 1843}).page is None
