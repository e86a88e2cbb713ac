"""TSV: as CSV, with tabs. Quotation marks are read as in CSV where they are set so; in IANA's definition they mean
nothing."""

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.delimited import read_table


def parse(text: str) -> ParsedDocument:
    """Raises UnparsableDocument as `read_table` does; a quotation mark that does not fit is a character."""
    try:
        return read_table(text, "\t", name="TSV")
    except UnparsableDocument as refusal:
        if refusal.reason == "empty_content":
            raise
        return read_table(text, "\t", name="TSV", quoted=False)
