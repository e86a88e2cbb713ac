"""Summaries that a language model wrote, kept until what they summarise changes: saved items of the service itself.

All that the model is asked is hashed, with its name. So a summary is written again where a passage, the model or the
prompt is another, and no sooner unless somebody asks.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from query_api.answers.model.prompt import summarising
from query_api.answers.model.writer import AnswerWriter, Draft
from query_api.errors import AnotherLog, ApiProblem
from query_api.index.search_snapshot import Snapshot
from query_api.saved.items import SavedItems
from query_api.study.summarised import Summarised
from schemas.answers import Summary
from schemas.clock import rfc3339
from schemas.ids import DocumentKey, digest
from schemas.saved import SavedKind

OWNER = "service"  # no caller is called so
KIND: SavedKind = "summary"
WORDS_A_SENTENCE = 30
MOST_LISTED = 100_000
FORGOTTEN_AT_ONCE = 100


class _Subject(msgspec.Struct):
    subject: tuple[str, ...] = ()


class _Kept(_Subject):
    """What is kept of one `subject`, see `Summarised`: `content` is the hash of what it was written from."""

    content: str = ""
    summary: dict[str, Any] = {}


class KeptSummaries:
    """On the event loop only. `current` gives the snapshot that is read now."""

    def __init__(self, saved: SavedItems, current: Callable[[], Snapshot | None]) -> None:
        self._saved, self._current = saved, current
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def written(self, writer: AnswerWriter, of: Summarised, caller: str, *, anew: bool) -> Summary:
        """The summary that is kept of these passages, else one that is written now; `anew` even where one is kept.
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
            if kept is not None and not anew:
                return kept
            draft = await writer.summarise(asked, of.hits, of.most, words, caller, anew=kept is not None)
            about = {"dropped": draft.dropped, "usage": draft.usage}
            if not draft.citations:
                return _instead(kept or of.extract.model_copy(update=about), draft)
            summary = Summary(form="model", text=draft.text, citations=draft.citations, notes=list(of.notes), **about)
            if draft.problem:
                summary.notes.append(f"It may lack something: {draft.problem}")
                return summary
            try:
                value = _Kept(of.subject, content, summary.model_dump(mode="json", exclude_defaults=True))
                await self._saved.put(OWNER, KIND, item, msgspec.to_builtins(value))
                await self._forget_what_is_gone()
            except (ApiProblem, AnotherLog) as error:
                summary.notes.append(f"This is not kept, and will be written again. {error}")
                return summary
            return await self._kept(item, content) or summary

    async def _kept(self, item: str, content: str) -> Summary | None:
        """None where nothing is kept, or of other passages; also while the topic was not read yet."""
        found = self._saved.get(OWNER, KIND, item) if await self._saved.wait_until_reached() else None
        if found is None or found.head is None:
            return None
        try:
            kept = msgspec.json.decode(found.head.body, type=_Kept)
            made = {"made_at": rfc3339(found.head.at_ms)}
            return Summary(**kept.summary | made) if kept.content == content else None
        except ValueError:  # of another program
            return None

    async def _forget_what_is_gone(self) -> None:
        """Delete what is kept of documents that were deleted, and of communities that broke up."""
        listed, _ = self._saved.list(OWNER, KIND, MOST_LISTED)
        bodies = [(each.id, each.head.body) for each in listed if each.head is not None]
        for item in await asyncio.to_thread(self._gone, bodies):
            await self._saved.delete(OWNER, KIND, item)

    def _gone(self, bodies: Sequence[tuple[str, bytes]]) -> list[str]:
        snapshot = self._current()
        read = msgspec.json.Decoder(_Subject)
        subjects = ((item, read.decode(body).subject) for item, body in bodies if snapshot is not None)
        gone = [item for item, subject in subjects if snapshot is not None and _is_gone(snapshot, subject)]
        return gone[:FORGOTTEN_AT_ONCE]


def _is_gone(snapshot: Snapshot, subject: Sequence[str]) -> bool:
    if len(subject) == 2:
        return snapshot.graph.document(DocumentKey(*subject)) is None
    return snapshot.communities is not None and snapshot.communities.row("".join(subject)) is None


def _instead(summary: Summary, draft: Draft) -> Summary:
    why = draft.problem or "Nothing that the language model wrote is supported by what it was shown."
    shown = "the one that it wrote before" if summary.form == "model" else "sentences of the documents, word for word"
    return summary.model_copy(update={"notes": [*summary.notes, f"{why} The summary is {shown}."]})
