"""A made-up encyclopedia: linked articles whose graph has the proportions of a real one (4,598 leads of Wikipedia).

There an article has 7.4 chunks in 2 passages, 43 mentions, 26 links and 2 statements; half of the mentions are of a new
name, names have 17 characters in 2.6 words, and one word of seven is new.
"""

import random

from schemas.graph_delta import AboutEdge, ChunkEdge, ChunkNode, Contribution, LinkEdge, MentionEdge, SectionNode
from schemas.ids import DocumentKey, chunk_id, passage_id, section_id
from tests.support.fixtures.graph import statement

COLLECTION = "encyclopedia"
CHUNKS, MENTIONS_OF_CHUNK, LINKS, STATEMENTS = 7, 6, 26, 2


def encyclopedia(articles: int) -> list[Contribution]:
    """Contributions of so many articles, the same each time."""
    names = _Names(random.Random(1))
    return [_article(number, articles, names) for number in range(articles)]


class _Names:
    """Names and words in use: one is new, or the oftener used the sooner it came up."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._names: list[str] = []
        self._words: list[str] = []

    def name(self) -> str:
        if not self._names or self.chance.random() < 0.5:
            self._names.append(" ".join(self._word() for _ in range(self.chance.choice((2, 3, 3)))))
            return self._names[-1]
        return self._recurring(self._names)

    def _word(self) -> str:
        if not self._words or self.chance.random() < 1 / 7:
            self._words.append("".join(self.chance.choices("abcdefghijklmnopqrstuvwxyz", k=self.chance.randint(3, 9))))
            return self._words[-1]
        return self._recurring(self._words)

    def _recurring(self, held: list[str]) -> str:
        return held[int(len(held) * self.chance.random() ** 3)]


def _article(number: int, articles: int, names: _Names) -> Contribution:
    key, chance = DocumentKey(COLLECTION, f"article-{number}"), names.chance
    chunks = [
        ChunkNode(chunk_id(key, [], str(at), 0), passage_id(key, [], str(at // 4), 0), at // 4, 0)
        for at in range(CHUNKS)
    ]
    mentions = {(at, names.name()): None for at in range(CHUNKS) for _ in range(MENTIONS_OF_CHUNK)}
    linked = {(chance.randrange(CHUNKS), chance.randrange(articles)): None for _ in range(LINKS)}
    title = names.name()
    return Contribution(
        collection=COLLECTION,
        document_id=key.document_id,
        revision="1",
        title=title.title(),
        sections=[SectionNode(section_id(key, [], 0), "", 0, -1)],
        chunks=chunks,
        about=[AboutEdge(title, title.title(), 1.0)],
        mentions=[
            MentionEdge(at, name, name.title(), "thing", chance.choice((1, 1, 1, 2)), [3 * at]) for at, name in mentions
        ],
        statements=[
            statement(
                chunks,
                at,
                "located in",
                [("subject", title), ("object", names.name())],
                extractor="test",
                confidence=0.8,
                sentence=3 * at,
            )
            for at in range(STATEMENTS)
        ],
        edges=[ChunkEdge("next_chunk", at, at + 1, 0.85) for at in range(CHUNKS - 1)],
        links=[LinkEdge(at, COLLECTION, f"article-{target}", 1.0) for at, target in linked],
    )
