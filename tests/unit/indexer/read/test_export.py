from collections.abc import Sequence

from indexer.read.export import envelope_of, html_of
from indexer.read.rows import PassageRow
from indexer.schema import DocumentRow
from schemas.graph_documents import NODE_TYPE, read_made
from schemas.graph_edits import NodeEdit
from schemas.ids import DocumentKey

KEY = DocumentKey("docs", "guide")


def passage(ordinal: int, section: Sequence[str], start: int, text: str) -> PassageRow:
    return PassageRow(str(ordinal), KEY, "r1", ordinal, list(section), start, start + len(text), "Guide", text)


def test_what_passages_repeat_of_each_other_is_written_once() -> None:
    passages = [passage(0, [], 0, "One. Two."), passage(1, [], 5, "Two. Three.")]
    assert html_of(passages) == "<pre>One. Two.</pre>\n<pre>Three.</pre>"


def test_each_heading_is_written_once_at_its_depth_and_texts_are_escaped() -> None:
    passages = [
        passage(0, ["Guide"], 0, "Intro <b>"),
        passage(1, ["Guide", "Install"], 20, "Type this."),
        passage(2, ["Guide", "Use & care"], 40, "Go."),
    ]
    assert html_of(passages).split("\n") == [
        "<h1>Guide</h1>",
        "<pre>Intro &lt;b&gt;</pre>",
        "<h2>Install</h2>",
        "<pre>Type this.</pre>",
        "<h2>Use &amp; care</h2>",
        "<pre>Go.</pre>",
    ]


def test_an_envelope_has_what_the_producer_sent_and_no_more() -> None:
    metadata = {"author": "Ada", "page_starts": [0], "stated_fields": []}
    row = DocumentRow(KEY, 7, 0, 3, 1_000, revision="r1", title="Guide", uri="http://x/", metadata=metadata)
    envelope = envelope_of(row, [passage(1, [], 5, "b"), passage(0, [], 0, "a")])
    assert (envelope.id, envelope.collection, envelope.title, envelope.version) == ("guide", "docs", "Guide", 7)
    assert (envelope.uri, envelope.metadata) == ("http://x/", {"author": "Ada"})
    assert envelope.content == "<pre>a</pre>\n<pre>b</pre>"


def test_node_is_exported_as_it_was_made() -> None:
    key = DocumentKey("docs", "node:ann")
    row = DocumentRow(
        key, None, 0, 3, 1_000, revision="r1", content_type=NODE_TYPE, title="Ann Lee",
        metadata={"node": "ann", "node_type": "person", "lang": "en"},
    )  # fmt: skip
    graph = {"label": "Ann Lee", "type": "person", "aliases": ["A. Lee"], "properties": {"born": 1815}, "by": None}
    envelope = envelope_of(row, [passage(1, [], 5, "Two. Three."), passage(0, [], 0, "One. Two.")], graph)
    made = read_made(key, envelope.content_type, (envelope.content or "").encode())
    text = "One. Two. Three."
    expected = NodeEdit(label="Ann Lee", type="person", text=text, aliases=["A. Lee"], properties={"born": 1815})
    assert (made, envelope.metadata, envelope.title) == (("ann", expected), {"lang": "en"}, None)
