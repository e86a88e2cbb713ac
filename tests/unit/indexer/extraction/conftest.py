"""Documents made by hand: parsed text with its sections, cut into chunks of a given size."""

from collections.abc import Callable

import pytest

from indexer.documents import Chunk, ChunkedDocument, ParsedDocument, Passage, Section, TextLink

Document = tuple[ParsedDocument, ChunkedDocument]


@pytest.fixture
def document() -> Callable[..., Document]:
    """Makes a document of one section, or of those given, cut every `size` characters."""

    def make(
        text: str,
        *,
        size: int = 10_000,
        title: str | None = None,
        fields: tuple[tuple[str, str], ...] = (),
        links: tuple[TextLink, ...] = (),
        emphasised: tuple[str, ...] = (),
        sections: tuple[Section, ...] | None = None,
    ) -> Document:
        sections = sections or (Section((), 0, len(text)),)
        chunks: list[Chunk] = []
        passages: list[Passage] = []
        for number, section in enumerate(sections):
            content = text[section.start : section.end]
            passages.append(Passage(f"p{number}", number, number, section.start, section.end, content))
            for start in range(section.start, section.end, size):
                end = min(start + size, section.end)
                identity = f"c{len(chunks)}"
                chunks.append(Chunk(identity, len(chunks), number, number, start, end, text[start:end]))
        parsed = ParsedDocument(title, text, sections, links, (), emphasised, fields)
        return parsed, ChunkedDocument(sections, tuple(passages), tuple(chunks))

    return make
