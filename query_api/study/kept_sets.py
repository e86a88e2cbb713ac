"""Study sets of a caller: an item each in the store of what is saved, whose parts are the results of answering."""

from contextlib import suppress
from typing import NamedTuple, cast
from uuid import uuid4

from pydantic import ValidationError

from query_api.errors import conflict, invalid_request
from query_api.query.analysis import normalise_text
from query_api.saved.items import ItemGone, SavedItem, SavedItems, SavedRecord
from schemas.choices import StudyKind
from schemas.clock import rfc3339
from schemas.ids import normalise_name
from schemas.study import (
    MOST_RESULTS,
    AnswerResult,
    GivenAnswer,
    StudyAnswers,
    StudyContent,
    StudyPage,
    StudyQuestion,
    StudyRequest,
    StudyResult,
    StudyScope,
    StudyScore,
    StudySet,
    StudySummary,
)


class KeptSets(NamedTuple):
    """Those of one caller and kind. Methods raise ApiProblem, as those of `SavedItems` do."""

    saved: SavedItems
    owner: str
    kind: StudyKind

    async def keep(self, asked: StudyRequest, content: StudyContent, graph_position: int) -> StudySet:
        identifier, scope = uuid4().hex, asked.model_dump(include={*StudyScope.model_fields})
        of_set = {"kind": self.kind, "scope": scope, "graph_position": graph_position, "size": content.total}
        await self.saved.put(self.owner, self.kind, identifier, content.model_dump(mode="json") | of_set)
        return await self.get(identifier)

    async def get(self, identifier: str) -> StudySet:
        return _set(await self.saved.find(self.owner, self.kind, identifier))

    async def page(self, limit: int, cursor: str | None) -> StudyPage:
        """Raises MalformedCursor."""
        await self.saved.wait_until_reached()
        items, following = self.saved.list(self.owner, self.kind, limit, cursor)
        found = []
        for item in items:
            with suppress(ItemGone):
                found.append(StudySummary(**dict(_set(item))))
        return StudyPage(sets=found, next_cursor=following)

    async def answer(self, identifier: str, given: StudyAnswers) -> StudyResult:
        """What of it is right, kept with the set."""
        found = await self.get(identifier)
        if len(found.results) >= MOST_RESULTS:
            raise conflict(f"The set has {MOST_RESULTS:,} results, and takes no more: make it again.")
        answers = _assessed({each.question: each for each in found.questions}, given.answers)
        right = sum(each.right for each in answers)
        score = {"right": right, "answered": len(answers), "score": round(right / len(answers), 4)}
        await self.saved.put(self.owner, self.kind, identifier, score | given.model_dump(), uuid4().hex)
        return StudyResult(**dict((await self.get(identifier)).results[-1]), answers=answers)

    async def delete(self, identifier: str) -> None:
        await self.saved.delete(self.owner, self.kind, identifier)


def _set(item: SavedItem) -> StudySet:
    """Raises ItemGone for what another program wrote, which is no set."""
    try:
        head = cast("SavedRecord", item.head)  # of all that `SavedItems` finds
        results = [StudyScore(**record.value | {"at": rfc3339(record.at_ms)}) for record in item.parts.values()]
        return StudySet(**head.value | {"id": item.id, "created_at": rfc3339(head.at_ms), "results": results})
    except ValidationError as error:
        raise ItemGone("study set", item.id) from error


def _assessed(questions: dict[int, StudyQuestion], given: list[GivenAnswer]) -> list[AnswerResult]:
    """Raises ApiProblem 422 for answers to what is not asked, or that are no options."""
    seen: set[int] = set()
    found = []
    for each in given:
        asked = questions.get(each.question)
        if asked is None:
            there = f"it has the questions 1 to {len(questions)}"
            raise invalid_request(f"The set has no question {each.question}: {there}.")
        if each.question in seen:
            raise invalid_request(f"Question {each.question} is answered twice: give one answer.")
        if asked.options and each.answer not in asked.options:
            raise invalid_request(f"Question {each.question}: give as `answer` one of {' | '.join(asked.options)}.")
        seen.add(each.question)
        right = bool(each.known) if each.answer is None else _same(each.answer, asked.answer)
        found.append(
            AnswerResult(**each.model_dump(), right=right, expected=asked.answer, explanation=asked.explanation)
        )
    return found


def _same(given: str, expected: str) -> bool:
    return normalise_name(given) == normalise_name(expected) or normalise_text(given) == normalise_text(expected)
