"""What requests may choose from, by name. Light to import: commands list and complete the choices with it."""

from typing import Literal

Mode = Literal["hybrid", "vector", "keyword", "structured", "graph", "graph_rerank", "global"]
Fusion = Literal["adaptive", "rrf", "weighted"]
Channel = Literal["vector", "keyword", "structured", "graph"]
Intent = Literal["explain", "compare", "find", "summarise", "path", "quiz", "relation", "global", "general"]
GraphMethod = Literal["hop", "expansion", "pagerank"]
Duplicates = Literal["keep", "exact", "semantic"]
Context = Literal["parent", "window", "section"]
Edge = Literal[
    "named", "title_mention", "mentioned_by", "shared_entity", "link", "statement", "relation", "residual",
    "next_chunk", "similar_to", "related_to",
]  # fmt: skip
"""What the graph channel of a search follows."""

EdgeKind = Literal[
    "has_chunk", "next_chunk", "similar_to", "related_to", "links_to", "mentions", "about", "states", "hand_made"
]
"""Edges of the graph as shown to people."""

ChunkingMethod = Literal["sentences", "semantic"]
ExtractorName = Literal["rules", "spacy", "language_model", "none"]
CommunityLevel = Literal["coarse", "medium", "fine"]
ReviewState = Literal["open", "accepted", "rejected", "split", "merged"]
ReviewKind = Literal["duplicate", "conflict", "enhancement"]
"""Names that may be one; statements that contradict each other; statements of which one says more."""

PlanForm = Literal["rules", "model"]
StudyKind = Literal["cards", "quiz", "map", "path"]
STUDY_PATHS: dict[StudyKind, str] = {
    "cards": "/v1/cards",
    "quiz": "/v1/quizzes",
    "map": "/v1/concept-maps",
    "path": "/v1/learning-paths",
}
MOST_OF_STUDY = 50  # cards, questions or concepts of a set
