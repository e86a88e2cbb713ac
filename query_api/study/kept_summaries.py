"""Summaries that a language model wrote, kept until what they summarise changes: saved items of the service itself.

All that the model is asked is hashed, with its name. So a summary is written again where a passage, the model or the
prompt is another, and no sooner unless somebody asks.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from pydantic import ValidationError

from query_api.answers.model.prompt import summarising
from query_api.answers.model.writer import AnswerWriter
from query_api.errors import AnotherLog, ApiProblem
from query_api.index.search_snapshot import Snapshot
from query_api.saved.items import SavedItems
from query_api.study.summarised import Summarised, is_gone
from schemas.answers import Summary
from schemas.clock import rfc3339
from schemas.ids import digest
from schemas.saved import SavedKind

OWNER = "service"  # no caller is called so
KIND: SavedKind = "summary"
WORDS_A_SENTENCE = 30
LOOKED_AT = 500  # kept ones, after one is written, for whether what they are of is gone


class KeptSummaries:
    """On the event loop only. `current` gives the snapshot that is read now."""

    def __init__(self, saved: SavedItems, current: Callable[[], Snapshot | None]) -> None:
        self._saved, self._current = saved, current
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._looked_at: str | None = None

    async def written(self, writer: AnswerWriter, of: Summarised, caller: str, *, again: bool) -> Summary:
        """The summary that is kept of these passages, else one that is written now; `again` even where one is kept.
        Where the model fails it is the one before, or the extract, and a note says why. Raises nothing for the model
        or for Kafka."""
        if not of.hits:
            return of.extract
        words = WORDS_A_SENTENCE * of.most
        asked = summarising(of.hits, of.names, sentences=of.most, words=words)
        item, content = digest(*of.subject), digest(writer.name, msgspec.json.encode(asked).decode())
        lock = self._locks.setdefault(item, asyncio.Lock())
        async with lock:  # who asks meanwhile gets what is being written
            kept = await self._kept(item, content)
            if kept is not None and not again:
                return kept
            draft = await writer.summarise(asked, of.hits, of.most, words, caller, again=kept is not None)
            about: dict[str, Any] = {"dropped": draft.dropped, "usage": draft.usage}
            if not draft.citations:
                why = draft.problem or "Nothing that the language model wrote is supported by what it was shown."
                shown = "the one that it wrote before" if kept else "sentences of the documents, word for word"
                instead = kept or of.extract.model_copy(update=about)
                return instead.model_copy(update={"notes": [*instead.notes, f"{why} The summary is {shown}."]})
            made = Summary(form="model", text=draft.text, citations=draft.citations, notes=list(of.notes), **about)
            if draft.problem:
                made.notes.append(f"It may lack something: {draft.problem}")
                return made
            value = {"subject": of.subject, "content": content, "summary": made.model_dump(exclude_defaults=True)}
            try:
                await self._saved.put(OWNER, KIND, item, value)
            except (ApiProblem, AnotherLog) as error:
                made.notes.append(f"This is not kept, and is written again the next time. {error}")
                return made
            with suppress(ApiProblem, AnotherLog):  # the next one tries again
                await self._forget_what_is_gone()
            return await self._kept(item, content) or made

    async def _kept(self, item: str, content: str) -> Summary | None:
        """None where nothing is kept, or of other passages; also while the topic was not read yet."""
        found = self._saved.get(OWNER, KIND, item) if await self._saved.wait_until_reached() else None
        if found is None or found.head is None or found.head.value.get("content") != content:
            return None
        try:
            return Summary(**found.head.value["summary"] | {"made_at": rfc3339(found.head.at_ms)})
        except (KeyError, TypeError, ValidationError):  # of another program
            return None

    async def _forget_what_is_gone(self) -> None:
        """Delete what is kept of documents that were deleted, and of communities that broke up: the next LOOKED_AT."""
        items, self._looked_at = self._saved.list(OWNER, KIND, LOOKED_AT, self._looked_at)
        snapshot = self._current()
        for item in items:
            if item.head and snapshot and is_gone(item.head.value.get("subject", ()), snapshot):
                await self._saved.delete(OWNER, KIND, item.id)
