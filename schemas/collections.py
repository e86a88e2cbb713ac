"""The collections there are: what each holds, and what was chosen for it."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from schemas.curation import ChunkingChoice
from schemas.linking import LinkingChoice

MOST_NAMED = 20


class CollectionSummary(BaseModel):
    """A collection with live documents, or with a setting ahead of them."""

    name: str
    documents: int = Field(0, description="Live documents; 0 where only a setting is there yet.")
    passages: int = 0
    chunks: int = 0
    chunking: ChunkingChoice | None = Field(None, description="What was chosen; null where nothing was.")
    linking: LinkingChoice | None = Field(None, description="What was chosen; null where nothing was.")


class CollectionList(BaseModel):
    """In the order of their names."""

    collections: list[CollectionSummary]
    notes: list[str] = Field(default_factory=list, description="What this answer could not tell, in sentences.")


def those_there(names: Sequence[str]) -> str:
    """The collections with documents, as far as they are not too many, in a sentence for who asked for another."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"There are documents in {', '.join(names[:MOST_NAMED])}{more}."
