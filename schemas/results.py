"""What a search may add to its hits: which of them stay, what stands around them, how sure they are."""

from typing import Literal

from pydantic import BaseModel, Field

Duplicates = Literal["keep", "exact", "semantic"]
Context = Literal["parent", "window", "section"]

MAX_CONTEXT_CHUNKS = 10
DUPLICATE_THRESHOLD = 0.95
CONTEXT_CHUNKS = 2
MAX_PER_VALUE = 2


class DuplicateHit(BaseModel):
    """A hit that was left out, because one before it says the same."""

    document_id: str
    collection: str
    passage_id: str
    similarity: float = Field(description="1 for the same text, else the cosine of the two chunks that matched.")


class Factors(BaseModel):
    """What speaks for a hit, each from 0 to 1, and their weighted sum. They explain; the order comes from the scores
    and the confidence from a model of its own."""

    semantic: float = Field(description="Cosine of the question with its nearest chunk.")
    exact: float = Field(description="Share of the question's telling words, or of the fields asked for, that it has.")
    recency: float = Field(description="Halves with each year since its document's own date, else its record.")
    centrality: float = Field(description="n / (n + 10), where n passages of other documents name or link to its own.")
    relationship: float = Field(description="How strongly the graph's edges lead from the question to it.")
    entity: float = Field(description="Share of the names in the question that it mentions or is about.")
    source: float = Field(description="Share of what tells its origin that is there: a URI, a version, metadata.")
    weighted: float = Field(description=".25, .20, .15, .15, .10, .10 and .05 of these, in this order.")
