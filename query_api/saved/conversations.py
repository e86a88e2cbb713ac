"""Stored conversations: an item each, whose parts are its messages and its title, in the order of the log.

A question and its answer are two parts, named by the retrieval that answered. So what is kept twice, as by a stream
that was resumed, is there once.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from textwrap import shorten
from typing import Any, NamedTuple
from uuid import uuid4

from pydantic import ValidationError

from query_api.answers.follow_ups import MEMORY
from query_api.errors import AnotherLog, ApiProblem, conflict, invalid_request
from query_api.index.graph.view import GraphView
from query_api.saved.items import ItemGone, SavedItem, SavedItems, SavedRecord
from schemas.answers import Answer
from schemas.clock import rfc3339
from schemas.conversations import (
    MOST_MESSAGES,
    Conversation,
    ConversationMessage,
    ConversationPage,
    ConversationSummary,
    NewConversation,
)
from schemas.cursors import read_cursor, write_cursor
from schemas.frames import Done
from schemas.hits import SearchAnswer
from schemas.ids import DocumentKey
from schemas.openai_protocol import Message
from schemas.saved import SavedKind
from schemas.search import SearchRequest

KIND: SavedKind = "conversation"
TITLE = "title"
QUESTION, ANSWER = ".q", ".a"
TITLE_CHARACTERS = 80

Complete = Callable[[str, Sequence[Message]], Awaitable[str]]
"""Question, messages before it → the question, complete in itself."""
Finish = Callable[[Done | SearchAnswer], Awaitable[list[str]]]
"""Called with the end of a search; gives further notes. May raise ApiProblem in place of the end."""


class StoredConversation(NamedTuple):
    """One of a caller's. Methods raise ApiProblem, as those of `SavedItems` do, and 404 where it is deleted."""

    saved: SavedItems
    owner: str
    item: SavedItem

    @classmethod
    async def create(cls, saved: SavedItems, owner: str, new: NewConversation) -> "StoredConversation":
        identifier = uuid4().hex
        await saved.put(owner, KIND, identifier, new.model_dump(mode="json", exclude_defaults=True))
        return await cls.find(saved, owner, identifier)

    @classmethod
    async def find(cls, saved: SavedItems, owner: str, identifier: str) -> "StoredConversation":
        return cls(saved, owner, await saved.find(owner, KIND, identifier))

    async def rename(self, title: str) -> None:
        await self.saved.put(self.owner, KIND, self.item.id, {TITLE: title}, TITLE)

    async def delete(self) -> None:
        await self.saved.delete(self.owner, KIND, self.item.id)

    @property
    def head(self) -> NewConversation:
        try:
            return NewConversation.model_validate({} if self.item.head is None else self.item.head.value)
        except ValidationError:  # of another program
            return NewConversation()

    @property
    def message_count(self) -> int:
        return len(self.item.parts) - (TITLE in self.item.parts)

    @property
    def title(self) -> str | None:
        renamed = self.item.parts.get(TITLE)
        return self.head.title if renamed is None else str(renamed.value.get(TITLE))

    def summary(self) -> ConversationSummary:
        created_ms = 0 if self.item.head is None else self.item.head.at_ms
        times = {"created": rfc3339(created_ms), "changed": rfc3339(self.item.changed_ms)}
        about = self.head.model_dump() | times | {"title": self.title}
        return ConversationSummary(id=self.item.id, message_count=self.message_count, **about)

    def shown(self, limit: int, cursor: str | None) -> Conversation:
        """With its last messages, or the last before a cursor. Raises MalformedCursor."""
        below = None if cursor is None else read_cursor(cursor, int, "messages of a conversation")
        parts = [each for each in self.item.parts.items() if each[0] != TITLE]
        messages = [each for each in parts if below is None or each[1].offset < below]
        page = messages[-limit:]
        return Conversation(
            **self.summary().model_dump(),
            messages=[found for name, record in page if (found := _message(name, record)) is not None],
            next_cursor=write_cursor(page[0][1].offset) if len(messages) > limit else None,
        )

    async def asking(
        self, asked: SearchRequest, graph: GraphView | None, complete: Complete, resumed: str | None = None
    ) -> tuple[SearchRequest, Finish]:
        """The search for what is asked, in the scope and made `complete`, and what keeps it with its answer. `graph`
        knows which documents there are. `resumed` is the retrieval that answered it before, where the stream of that
        is resumed: what came after it is not what it follows. Raises ApiProblem."""
        if self.message_count >= MOST_MESSAGES:
            raise conflict(f"The conversation has {MOST_MESSAGES:,} messages, and takes no more: begin another.")
        self.saved.check_room(self.owner)
        head = self.head
        if head.collection and asked.collection not in (None, head.collection):
            raise invalid_request(
                f"`collection`: the conversation is about the collection {head.collection!r}. Leave `collection` out, "
                "or begin another conversation."
            )
        scope = {"collection": head.collection or asked.collection, "filter": (*asked.filter, *head.filter)}
        scope["q"] = await complete(asked.q, self._memory(resumed))
        return asked.model_copy(update=scope), partial(self._keep, asked.q, _missing(head, graph))

    async def _keep(self, question: str, notes: list[str], end: Done | SearchAnswer) -> list[str]:
        """Where Kafka is away the answer is given all the same, with a note."""
        answer = Answer(text="") if end.answer is None else end.answer
        kept: dict[str | None, dict[str, Any]] = {
            f"{end.retrieval_id}{QUESTION}": {"text": question},
            f"{end.retrieval_id}{ANSWER}": {"answer": answer.model_dump(mode="json", exclude_defaults=True)},
        }
        if self.title is None:
            kept[TITLE] = {TITLE: shorten(question, TITLE_CHARACTERS, placeholder=" …")}
        try:
            await self.saved.put_all(self.owner, KIND, self.item.id, kept)
        except ItemGone:
            raise
        except (ApiProblem, AnotherLog) as error:
            return [*notes, f"This is not kept in the conversation. {error}"]
        return notes

    def _memory(self, resumed: str | None) -> list[Message]:
        names, parts = list(self.item.parts), self.item.parts
        end = names.index(f"{resumed}{QUESTION}") if f"{resumed}{QUESTION}" in parts else len(names)
        last = [name for name in names[max(0, end - MEMORY - 1) : end] if name != TITLE][-MEMORY:]
        found = [_message(name, parts[name]) for name in last]
        return [Message(role=each.role, content=each.text) for each in found if each is not None]


def page_of(saved: SavedItems, owner: str, limit: int, cursor: str | None) -> ConversationPage:
    """A caller's conversations. Raises MalformedCursor, and ApiProblem as `SavedItems` does."""
    items, following = saved.list(owner, KIND, limit, cursor)
    found = [StoredConversation(saved, owner, item).summary() for item in items]
    return ConversationPage(conversations=found, next_cursor=following)


def _message(name: str, record: SavedRecord) -> ConversationMessage | None:
    """None for what another program wrote."""
    retrieval_id, _, kind = name.rpartition(".")
    of = {"retrieval_id": retrieval_id, "at": rfc3339(record.at_ms)}
    try:
        if kind == QUESTION[1:]:
            return ConversationMessage(role="user", text=record.value["text"], **of)
        answer = Answer.model_validate(record.value["answer"])
        return ConversationMessage(role="assistant", text=answer.reason or answer.text, answer=answer, **of)
    except (KeyError, ValidationError):
        return None


def _missing(head: NewConversation, graph: GraphView | None) -> list[str]:
    """A note where documents of the scope are gone."""
    if not head.documents or graph is None or head.collection is None:
        return []
    gone = [each for each in head.documents if graph.document(DocumentKey(head.collection, each)) is None]
    if not gone:
        return []
    some = ", ".join(repr(each[:80]) for each in gone[:3])
    share = f"Of the {len(head.documents)} documents that this conversation is about, {len(gone)} are not there"
    return [f"{share}: {some}. Nothing is found in them; begin another conversation about others."]
