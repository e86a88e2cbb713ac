"""A research from its question to its note, a frame for each step."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from query_api.errors import ApiProblem
from query_api.research.note import envelope_of, frames_of, ranked, still_open
from query_api.research.plan import plan_for
from query_api.research.rounds import Rounds, Search
from schemas.answers import AnswerCitation, AnswerDelta
from schemas.research import (
    LONGEST_CLAIM,
    Action,
    ClaimCheck,
    ClaimRequest,
    Research,
    ResearchRequest,
    ResearchStep,
    SavedNote,
)

Check = Callable[[ClaimRequest], Awaitable[ClaimCheck]]
Publish = Callable[[dict[str, Any]], Awaitable[SavedNote]]
ResearchFrame = ResearchStep | AnswerCitation | AnswerDelta | Research


async def investigate(
    research_id: str, request: ResearchRequest, search: Search, check: Check, publish: Publish, *, notes_left_out: bool
) -> AsyncGenerator[ResearchFrame]:
    """The steps as they end, the note in pieces, at last the whole. `publish` is asked where the note is to be saved.
    Closing it ends the search that is under way. Raises ApiProblem.

    1. Classify the question, and route it: sub-questions, parameters of their searches.
    2. Check a claim against what is stated.
    3. Search in rounds (`query_api.research.rounds`).
    4. Rank the sentences, and write the note.
    5. Save it.
    """
    steps: list[ResearchStep] = []
    began = time.monotonic()

    def step(action: Action, **about: Any) -> ResearchStep:
        nonlocal began
        now = time.monotonic()
        made = ResearchStep(number=len(steps) + 1, action=action, seconds=round(now - began, 4), **about)
        steps.append(made)
        began = now
        return made

    plan = plan_for(request.q)  # 1
    yield step("classify", detail=plan.kind)
    parameters = [f"{name}={value}" for name, value in plan.parameters.items()]
    yield step("route", detail="; ".join([*plan.questions, *parameters]))
    checked = None
    if plan.kind == "claim" and len(request.q) <= LONGEST_CLAIM:  # 2
        checked = await check(ClaimRequest(claim=request.q, collection=request.collection))
        yield step("check", retrieval_id=checked.retrieval_id, sentences=len(checked.evidence), detail=checked.verdict)
    rounds = Rounds(request, plan, search, notes_left_out)
    async with aclosing(rounds.run()) as searches:  # 3
        async for each in searches:
            began = time.monotonic()
            steps.append(each.model_copy(update={"number": len(steps) + 1}))
            yield steps[-1]
    groups, remaining = ranked(rounds.found, request.sentences), still_open(rounds)  # 4
    kept = sum(len(citations) for _, citations in groups)
    yield step("rank", sentences=kept, detail=rounds.stopped)
    text = ""
    for frame in frames_of(groups, remaining):
        text += frame.text if isinstance(frame, AnswerDelta) else ""
        yield frame
    yield step("answer", sentences=kept)
    note = Research(
        research_id=research_id,
        question=request.q,
        kind=plan.kind,
        text=text,
        groups=[group for group, _ in groups],
        citations=[one for _, citations in groups for one in citations],
        open=remaining,
        check=checked,
        rounds=rounds.round,
        stopped=rounds.stopped,
        steps=steps,
    )
    if request.save and not kept:  # 5
        yield step("save", detail="Nothing was found, so nothing is saved.")
    elif request.save:
        try:
            note.saved = await publish(envelope_of(note, request.collection, request.save_to, rounds.positions))
            yield step("save", detail=note.saved.token)
        except ApiProblem as error:  # what was found is not lost with it
            yield step("save", detail=error.detail)
    yield note.model_copy(update={"steps": steps})
