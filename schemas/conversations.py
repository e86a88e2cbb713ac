"""Conversations: what a caller asked and what was answered, kept under an id, about chosen documents or all."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from schemas.answers import Answer
from schemas.errors import MalformedFilter
from schemas.filters import MAX_FILTER_CHARACTERS, parse_condition
from schemas.ids import MAX_COLLECTION_CHARACTERS

CONVERSATIONS_PATH = "/v1/conversations"
MOST_MESSAGES = 10_000
MOST_DOCUMENTS = 50

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
DocumentName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2048)]


class ConversationScope(BaseModel):
    """Where everything that is asked in a conversation is searched for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: Annotated[str, StringConstraints(min_length=1, max_length=MAX_COLLECTION_CHARACTERS)] | None = Field(
        None, description="Search this collection only; all when left out."
    )
    documents: Annotated[list[DocumentName], Field(max_length=MOST_DOCUMENTS)] = Field(
        default_factory=list, description="Search these documents of the collection only, by their ids."
    )

    @model_validator(mode="after")
    def _documents_can_be_chosen(self) -> Self:
        if self.documents and self.collection is None:
            raise ValueError("`documents` are ids within a collection: give `collection` too.")
        if len(self.filter or "") > MAX_FILTER_CHARACTERS:
            raise ValueError(f"The ids of `documents` are over {MAX_FILTER_CHARACTERS:,} characters: choose fewer.")
        return self

    @property
    def filter(self) -> str | None:
        """The filter of a search that these documents pass alone; None for all."""
        if not self.documents:
            return None
        text = "document=" + "|".join(each.replace("|", r"\|") for each in self.documents)
        if parse_condition(text).values != tuple(self.documents):
            raise MalformedFilter("`documents`: an id that ends with a backslash cannot be chosen; leave it out.")
        return text


class NewConversation(ConversationScope):
    title: Title | None = Field(None, description="Left out: the first question.")


class ConversationTitle(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: Title


class ConversationMessage(BaseModel):
    """A question, or the answer to the one before it."""

    role: Literal["user", "assistant"]
    text: str = Field(description="The question as it was asked; of an answer its text, or why it is refused.")
    answer: Answer | None = Field(None, description="The whole answer with its citations; null for a question.")
    retrieval_id: str = Field(description="The retrieval that answered it: both messages have the same.")
    at: str = Field(description="RFC 3339 time at which it was kept.")


class ConversationSummary(ConversationScope):
    """A conversation without its messages."""

    id: str
    title: str = Field(description="As it was given, else the first question.")
    message_count: int
    created: str = Field(description="RFC 3339 time.")
    changed: str = Field(description="RFC 3339 time of the newest message, or renaming.")


class Conversation(ConversationSummary):
    messages: list[ConversationMessage] = Field(description="The last of them, in the order of the log.")
    next_cursor: str | None = Field(None, description="The cursor of those before; null where these are the first.")


class ConversationPage(BaseModel):
    conversations: list[ConversationSummary] = Field(description="The one that was last changed first.")
    next_cursor: str | None = Field(None, description="The cursor of the next page; null on the last one.")
