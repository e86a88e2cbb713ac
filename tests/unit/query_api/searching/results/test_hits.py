"""What the caller sees of a place in the order of hits."""

from indexer.read.rows import ChunkRow, PassageRow
from indexer.tables import DocumentRow
from query_api.channels.question import Question
from query_api.searching.fusing import Place
from query_api.searching.results.hits import Texts, hits_of
from schemas.api import Hit
from schemas.ids import DocumentKey

KEY = DocumentKey("papers", "long.pdf")


def hit_at(start: int, metadata: dict[str, object]) -> Hit:
    passage = PassageRow("p", KEY, "r", 0, [], start, start + 10, "Long", "Some words.")
    chunk = ChunkRow("c", KEY, "r", 0, "p", [], start, start + 10, "Some words.")
    document = DocumentRow(KEY, None, 0, 1, 0, "r", "application/pdf", "Long", None, metadata)
    texts = Texts({"p": passage}, {"p": [chunk]}, {KEY: document})
    (hit,) = hits_of([Place("p", "c", 1.0, {}, {}, KEY)], [1], texts, Question("words"), None, "documents")
    return hit


def test_a_hit_tells_its_page_and_not_where_all_pages_begin() -> None:
    pages = {"year": 1843, "page_starts": [0, 100, 200]}
    assert [hit_at(start, pages).page for start in (0, 99, 100, 250)] == [1, 1, 2, 3]
    assert hit_at(0, pages).metadata == {"year": 1843}


def test_a_hit_in_a_format_without_pages_has_none() -> None:
    assert hit_at(0, {"year": 1843}).page is None
