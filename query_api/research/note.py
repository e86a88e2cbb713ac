"""The note of a research: sentences by the search that gave them, its text as frames, and as a document."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from query_api.answers.answer import pieces
from query_api.research.rounds import Found, Rounds
from schemas.answers import AnswerCitation, AnswerDelta, Citation
from schemas.ids import digest
from schemas.research import NOTE_URI, NoteGroup, Research

TITLE_CHARACTERS = 200
OPEN = "What remained open"


def ranked(found: Sequence[Found], most: int) -> list[tuple[NoteGroup, list[Citation]]]:
    """At most so many sentences: the first of each search in turn, then the second of each…; grouped by search, and
    numbered through."""
    longest = max((len(each.citations) for each in found), default=0)
    places = [(at, place) for place in range(longest) for at, each in enumerate(found) if place < len(each.citations)]
    kept = set(places[:most])
    groups, number = [], 0
    for at, each in enumerate(found):
        own = [one for place, one in enumerate(each.citations) if (at, place) in kept]
        numbered = [one.model_copy(update={"number": number + more}) for more, one in enumerate(own, start=1)]
        number += len(own)
        if numbered:
            numbers, query = [one.number for one in numbered], each.query
            group = NoteGroup(
                heading=query.heading, about=query.about, citations=numbers, retrieval_id=each.retrieval_id
            )
            groups.append((group, numbered))
    return groups


def still_open(rounds: Rounds) -> list[str]:
    """In sentences: the sub-questions that nothing answers, and the words of the question that no sentence holds."""
    found = [f"“{each.query.heading}”: {each.reason}" for each in rounds.unanswered()]
    words = [f"“{word}”" for word in rounds.open_words()]
    return [*found, f"No cited sentence holds {', '.join(words)}."] if words and not found else found


def frames_of(
    groups: Sequence[tuple[NoteGroup, list[Citation]]], remaining: Sequence[str]
) -> Iterator[AnswerCitation | AnswerDelta]:
    """Under the heading of each group its sentences, each after its source; at last what remained open."""
    index = 0

    def piece(text: str, citations: Sequence[int] = ()) -> AnswerDelta:
        nonlocal index
        index += 1
        return AnswerDelta(index=index - 1, text=text, citations=[*citations])

    for group, citations in groups:
        yield piece(f"{chr(10) * 2 if index else ''}{group.heading}\n")
        for citation, sentence in zip(citations, pieces(citations), strict=True):
            yield AnswerCitation(**citation.model_dump())
            yield piece(sentence.text, sentence.citations)
    if remaining:
        yield piece("".join([f"{chr(10) * 2 if index else ''}{OPEN}\n", "\n".join(remaining)]))


def envelope_of(note: Research, collection: str | None, save_to: str, positions: Iterable[str]) -> dict[str, Any]:
    """The note as a document, as `POST /v1/documents` takes it: plain text, in which nothing that documents say is
    markup. The same question over the same collection replaces its note."""
    sources = (f"{one.number}. {one.title} ({one.collection}/{one.document_id})" for one in note.citations)
    return {
        "id": f"note-{digest(note.question, collection or '')[:16]}",
        "collection": save_to,
        "title": note.question[:TITLE_CHARACTERS],
        "content": "\n".join([note.question, "", note.text, "", "Sources", *sources]),
        "content_type": "text/plain",
        "uri": NOTE_URI,
        "metadata": {
            "question": note.question,
            "kind": note.kind,
            "searched": collection or "",
            "retrievals": [step.retrieval_id for step in note.steps if step.retrieval_id],
            "positions": sorted(positions),
            "sources": [
                one.model_dump(include={"number", "collection", "document_id", "start", "end"})
                for one in note.citations
            ],
        },
    }
