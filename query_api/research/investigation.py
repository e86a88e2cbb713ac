"""A research from its question to its note: sentences grouped by the search that gave them. A frame for each step."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from query_api.answers.answer import pieces
from query_api.errors import ApiProblem
from query_api.research.plan import Plan, plan_for
from query_api.research.rounds import Found, Rounds, Search
from schemas.answers import AnswerCitation, AnswerDelta, Citation
from schemas.ids import digest
from schemas.research import NOTE_URI, ClaimCheck, NoteGroup, Research, ResearchRequest, ResearchStep, SavedNote

TITLE_CHARACTERS = 200
ResearchFrame = ResearchStep | AnswerCitation | AnswerDelta | Research
Check = Callable[[str], Awaitable[ClaimCheck]]
Decide = Callable[[], Awaitable[Plan | None]]
Publish = Callable[[dict[str, Any]], Awaitable[SavedNote]]


async def investigate(
    research_id: str,
    request: ResearchRequest,
    decide: Decide,
    search: Search,
    check: Check,
    publish: Publish,
    *,
    notes_left_out: bool,
) -> AsyncGenerator[ResearchFrame]:
    """The steps as they end, the note in pieces, at last the whole. Closing it ends the search that is under way.
    Raises ApiProblem where the first search does.

    1. Classify the question; route it: sub-questions, and parameters of their searches.
    2. Check a claim against what is stated.
    3. Search in rounds.
    4. Rank the sentences, and write the note.
    5. Publish it, where it is to be saved.
    """
    steps: list[ResearchStep] = []
    began = time.monotonic()

    def done(action: str, **about: Any) -> ResearchStep:
        nonlocal began
        now = time.monotonic()
        about = {"number": len(steps) + 1, "action": action, "seconds": round(now - began, 4), **about}
        steps.append(ResearchStep(**about))
        began = now
        return steps[-1]

    decided = await decide() if request.plan_form == "model" else None  # 1
    plan = decided or plan_for(request.q)
    yield done("classify", detail=plan.kind, form="rules" if decided is None else "model")
    parameters = [f"{name}={value}" for name, value in plan.parameters.items()]
    yield done("route", detail="; ".join([*plan.questions, *parameters]))
    checked = await check(request.q) if plan.kind == "claim" else None  # 2
    if checked is not None:
        yield done("check", retrieval_id=checked.retrieval_id, detail=checked.verdict)
    rounds = Rounds(request, plan, search, notes_left_out)
    async with aclosing(rounds.run()) as searches:  # 3
        async for step in searches:
            yield done(**step.model_dump(exclude={"number", "seconds"}))
    groups = ranked(rounds.found, request.sentences)  # 4
    citations, remaining = [one for _, own in groups for one in own], still_open(rounds)
    yield done("rank", sentences=len(citations), detail=rounds.stopped)
    text = ""
    for frame in note_frames(groups, remaining):
        text += frame.text if isinstance(frame, AnswerDelta) else ""
        yield frame
    yield done("answer", sentences=len(citations))
    note = Research(
        research_id=research_id, question=request.q, kind=plan.kind, text=text, groups=[group for group, _ in groups],
        citations=citations, open=remaining, check=checked, stopped=rounds.stopped, steps=steps,
    )  # fmt: skip
    note.document = envelope_of(note, request, rounds.positions) if citations else {}
    if request.save:  # 5
        try:
            note.saved = await publish(note.document) if citations else None
            place = f"{note.saved.collection}/{note.saved.id}" if note.saved else ""
            yield done("save", detail=place or "Nothing was found, so nothing is saved.")
        except ApiProblem as error:  # what was found is not lost with it
            yield done("save", detail=error.detail)
    yield note.model_copy(update={"steps": steps})


def ranked(found: Sequence[Found], most: int) -> list[tuple[NoteGroup, list[Citation]]]:
    """At most so many sentences: the first of each search in turn, then the second of each…; by search, and numbered
    through."""
    places = sorted((place, at) for at, each in enumerate(found) for place in range(len(each.citations)))[:most]
    groups, number = [], 0
    for at, each in enumerate(found):
        own = [each.citations[place] for place, of in places if of == at]
        own = [one.model_copy(update={"number": number + more}) for more, one in enumerate(own, start=1)]
        number += len(own)
        if own:
            heading, numbers = each.query.name or each.query.text, [one.number for one in own]
            groups.append((NoteGroup(heading=heading, citations=numbers, retrieval_id=each.retrieval_id), own))
    return groups


def still_open(rounds: Rounds) -> list[str]:
    """In sentences: the sub-questions that nothing answers; else the words of the question that no sentence holds."""
    unanswered = list(dict.fromkeys(f"“{each.query.text}”: {each.reason}" for each in rounds.unanswered()))
    words = ", ".join(f"“{word}”" for word in rounds.open_words())
    return unanswered or ([f"No sentence found holds {words}."] if words else [])


def note_frames(
    groups: Sequence[tuple[NoteGroup, list[Citation]]], remaining: Sequence[str]
) -> Iterator[AnswerCitation | AnswerDelta]:
    """Under the heading of each group its sentences, each after its source; at last what remained open."""
    index = 0
    for group, citations in groups:
        yield AnswerDelta(index=index, text=f"\n\n{group.heading}\n" if index else f"{group.heading}\n")
        for citation, piece in zip(citations, pieces(citations), strict=True):
            index += 1
            yield AnswerCitation(**citation.model_dump())
            yield piece.model_copy(update={"index": index})
        index += 1
    if remaining:
        text = "\n".join(["What remained open", *remaining])
        yield AnswerDelta(index=index, text=f"\n\n{text}" if index else text)


def envelope_of(note: Research, request: ResearchRequest, positions: Iterable[str]) -> dict[str, Any]:
    """The note as a document, as `POST /v1/documents` takes it: plain text, in which nothing that documents say is
    markup. The same question of the same collection replaces its note."""
    sources = (f"{one.number}. {one.title} ({one.collection}/{one.document_id})" for one in note.citations)
    fields = {"number", "collection", "document_id", "start", "end"}
    return {
        "id": f"note-{digest(note.question, request.collection or '')[:16]}",
        "collection": request.save_to,
        "title": note.question[:TITLE_CHARACTERS],
        "content": "\n\n".join([note.question, *filter(None, note.text.splitlines()), "Sources", *sources]),
        "content_type": "text/plain",
        "uri": NOTE_URI,
        "metadata": {
            "question": note.question,
            "kind": note.kind,
            "retrievals": [group.retrieval_id for group in note.groups],
            "positions": sorted(positions),
            "sources": [one.model_dump(include=fields) for one in note.citations],
        },
    }
