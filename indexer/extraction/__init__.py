"""What a document names, states and links to, by rules alone: no language model and no model of named entities.

Everything here is a pure function of one document, takes time linear in its length, and yields bounded results.
"""

from indexer.extraction.links import resolve_links
from indexer.extraction.mentions import extract_mentions
from indexer.extraction.metadata import merged_metadata
from indexer.extraction.positions import Places
from indexer.extraction.statements import extract_facts
from indexer.extraction.titles import about_names, document_title

__all__ = [
    "Places",
    "about_names",
    "document_title",
    "extract_facts",
    "extract_mentions",
    "merged_metadata",
    "resolve_links",
]
