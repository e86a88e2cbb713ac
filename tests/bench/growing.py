"""A corpus grown: further rounds of its documents, with names and words of their own."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

MOST_ROUNDS = 26  # one for each shift of the alphabet

_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_WORD = re.compile(r"\b[a-z]{5,}\b")


def grown(documents: Sequence[DocumentUpsert], passages: int) -> Iterator[tuple[int, int, PreparedDocument]]:
    """(round, number in it, document) until there are so many passages. Raises ValueError when the documents are too
    few: each can be varied 25 times."""
    parameters = ChunkingParameters()
    made = 0
    for turn in range(MOST_ROUNDS):
        for number, document in enumerate(documents):
            if made >= passages:
                return
            prepared = prepare(varied(document, turn), parameters)
            made += len(prepared.chunked.passages)
            yield turn, number, prepared
    if made < passages:
        raise ValueError(f"{len(documents)} documents give {made} passages in {MOST_ROUNDS} rounds; give more of them.")


def varied(document: DocumentUpsert, turn: int) -> DocumentUpsert:
    """In the first round as it is, then with all its names shifted by `turn` letters, so that titles and mentions of a
    round meet each other alone, and with every ninth longer word spelt backwards."""
    if not turn:
        return document
    key = DocumentKey(document.key.collection, f"{turn}-{document.key.document_id}")
    title = None if document.title is None else _renamed(document.title, turn)
    words = iter(range(len(document.content)))
    text = _WORD.sub(lambda m: m[0] if next(words) % 9 else m[0][::-1], _renamed(document.content.decode(), turn))
    return msgspec.structs.replace(document, key=key, title=title, content=text.encode())


def _renamed(text: str, turn: int) -> str:
    return _NAME.sub(lambda m: "".join(_shifted(letter, turn) for letter in m[0]), text)


def _shifted(letter: str, turn: int) -> str:
    first = ord("A") if letter.isupper() else ord("a")
    return chr(first + (ord(letter) - first + turn) % 26)
