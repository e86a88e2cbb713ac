"""What a document names, states and links to, by rules alone: no language model and no model of named entities.

Everything here is a pure function of one document, takes time linear in its length, and yields bounded results.
"""

from indexer.extracting.facts import extract_facts
from indexer.extracting.links import resolve_links
from indexer.extracting.mentions import extract_mentions
from indexer.extracting.places import Places
from indexer.extracting.stated_metadata import merged_metadata
from indexer.extracting.titles import about_names, document_title

__all__ = [
    "Places",
    "about_names",
    "document_title",
    "extract_facts",
    "extract_mentions",
    "merged_metadata",
    "resolve_links",
]
