"""Conversations: what a caller asked and what was answered, kept under an id, about chosen documents or all."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from schemas.answers import Answer
from schemas.filters import MAX_FILTER_CHARACTERS, parse_condition
from schemas.ids import MAX_COLLECTION_CHARACTERS

CONVERSATIONS_PATH = "/v1/conversations"
MOST_MESSAGES = 10_000
MOST_DOCUMENTS = 50

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
DocumentName = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2048)]


class NewConversation(BaseModel):
    """What is asked in it is searched for in its scope alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Title | None = Field(None, description="Left out: the first question, null until there is one.")
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
        if any(len(each) > MAX_FILTER_CHARACTERS for each in self.filter):
            raise ValueError(f"The ids of `documents` are over {MAX_FILTER_CHARACTERS:,} characters: choose fewer.")
        if self.filter and parse_condition(self.filter[0]).values != tuple(self.documents):
            raise ValueError("`documents`: an id that ends with a backslash cannot be chosen; leave it out.")
        return self

    @property
    def filter(self) -> tuple[str, ...]:
        """The filter of a search that these documents pass alone; empty for all."""
        named = "|".join(each.replace("|", r"\|") for each in self.documents)
        return (f"document={named}",) if named else ()


class ConversationMessage(BaseModel):
    """A question, or the answer to the one before it."""

    role: Literal["user", "assistant"]
    text: str = Field(description="The question as it was asked; of an answer its text, or why it is refused.")
    answer: Answer | None = Field(None, description="The whole answer with its citations; null for a question.")
    retrieval_id: str = Field(description="The retrieval that answered it: both messages have the same.")
    at: str = Field(description="RFC 3339 time at which it was kept.")


class ConversationSummary(NewConversation):
    """A conversation without its messages."""

    id: str
    message_count: int
    created: str = Field(description="RFC 3339 time.")
    changed: str = Field(description="RFC 3339 time of the newest message, or renaming.")


class Conversation(ConversationSummary):
    messages: list[ConversationMessage] = Field(description="The last of them, in the order of the log.")
    next_cursor: str | None = Field(None, description="The cursor of those before; null where these are the first.")


class ConversationPage(BaseModel):
    conversations: list[ConversationSummary] = Field(description="The one that was last changed first.")
    next_cursor: str | None = Field(None, description="The cursor of the next page; null on the last one.")
