"""Source code as text: its lines and indentation are kept. Its language is that of its media type or file extension."""

from indexer.documents import ParsedDocument
from indexer.parsing.document_builder import TextAssembler


def parse(text: str) -> ParsedDocument:
    """One section with the code as it stands; blanks at the ends of lines fall away."""
    assembler = TextAssembler()
    assembler.verbatim(text)
    return assembler.finish()
