"""Ground truth of a caller: an item for each made question, whose only part is what a person last said of it."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from pydantic import ValidationError

from query_api.errors import conflict
from query_api.saved.items import ItemGone, SavedItem, SavedItems
from schemas.analytics import MAX_QUESTIONS
from schemas.ground_truth import (
    ExpectedAnswer,
    GroundTruthAdded,
    GroundTruthPage,
    GroundTruthQuestion,
    Judgement,
    MadeQuestion,
    QuestionJudgement,
)
from schemas.ids import digest
from schemas.saved import SavedKind

KIND: SavedKind = "question"
JUDGEMENT = "judgement"
DIGITS = 24


class GroundTruth(NamedTuple):
    """Methods raise ApiProblem, as those of `SavedItems` do."""

    saved: SavedItems
    owner: str

    async def add(self, collection: str, questions: Sequence[MadeQuestion], most: int) -> GroundTruthAdded:
        """Adds the first `most` of the questions that are not there yet; they are listed in their order."""
        await self.saved.wait_until_reached()
        known = {item.id for item in self._items(collection)}
        new = {_id(collection, each.text): each for each in reversed(questions)}
        new = dict([one for one in new.items() if one[0] not in known][-most:])
        if len(known) + len(new) > MAX_QUESTIONS:
            raise conflict(f"The collection has {len(known):,} questions, of at most {MAX_QUESTIONS:,}: judge those.")
        for identifier, each in new.items():
            value = each.model_dump(exclude_defaults=True) | {"collection": collection}
            await self.saved.put(self.owner, KIND, identifier, value)
        return GroundTruthAdded(collection=collection, added=len(new))

    async def page(
        self, collection: str | None, judgement: Judgement | None, limit: int, cursor: str | None
    ) -> GroundTruthPage:
        """Raises MalformedCursor."""
        await self.saved.wait_until_reached()
        items = self._items(collection)
        wanted = {item.id for item in items if judgement in (None, _judgement(item).judgement)}
        found, following = self.saved.list(self.owner, KIND, limit, cursor, wanted)
        questions = []
        for item in found:
            with suppress(ItemGone):
                questions.append(_question(item))
        counts = Counter(_judgement(item).judgement for item in items)
        return GroundTruthPage(questions=questions, counts=dict(counts), next_cursor=following)

    async def find(self, identifier: str) -> GroundTruthQuestion:
        return _question(await self.saved.find(self.owner, KIND, identifier))

    async def judge(self, identifier: str, given: QuestionJudgement) -> GroundTruthQuestion:
        await self.saved.put(self.owner, KIND, identifier, given.model_dump(exclude_defaults=True), JUDGEMENT)
        return await self.find(identifier)

    def _items(self, collection: str | None) -> list[SavedItem]:
        begin = "" if collection is None else _id(collection, "")[:DIGITS]
        return [item for item in self.saved.all(self.owner, KIND) if item.id.startswith(begin)]


def _id(collection: str, text: str) -> str:
    return f"{digest(collection)[:DIGITS]}.{digest(text)[:DIGITS]}"


def _judgement(item: SavedItem) -> QuestionJudgement:
    """Open for what another program wrote."""
    with suppress(KeyError, ValidationError):
        return QuestionJudgement.model_validate(item.parts[JUDGEMENT].value)
    return QuestionJudgement(judgement="open")


def _question(item: SavedItem) -> GroundTruthQuestion:
    """Raises ItemGone for what another program wrote, which is no question."""
    said = _judgement(item)
    try:
        value = {"id": item.id, "judgement": said.judgement} | (item.head.value if item.head else {})
        made = GroundTruthQuestion.model_validate(value)
    except ValidationError as error:
        raise ItemGone(KIND, item.id) from error
    if said.corrected is None:
        return made
    before = ExpectedAnswer(**made.model_dump(include={*ExpectedAnswer.model_fields}))
    return made.model_copy(update={**dict(said.corrected), "made": before})
