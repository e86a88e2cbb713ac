"""Nodes and edges that people made. A node's text is read as it is, to be shown and changed; an edge has none."""

from indexer.documents import ParsedDocument, Section
from indexer.parsing.decoding import normalise
from schemas.graph_edits import EDGE, NODE, EdgeEdit, NodeEdit, read_model
from schemas.limits import is_visible, shortened_title


def parse_node(content: bytes) -> ParsedDocument:
    """Its label is the title. Raises MalformedEvent."""
    node = read_model(NodeEdit, content, NODE)
    text = normalise(node.text).strip() if is_visible(node.text) else ""
    sections = (Section((), 0, len(text)),) if text else ()
    return ParsedDocument(node.label, text, sections, names=tuple(node.aliases))


def parse_edge(content: bytes) -> ParsedDocument:
    """What it says is the title, for lists. Raises MalformedEvent."""
    edge = read_model(EdgeEdit, content, EDGE)
    return ParsedDocument(shortened_title(f"{edge.source} {edge.predicate} {edge.target}"), "", ())
