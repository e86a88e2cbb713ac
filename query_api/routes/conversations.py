"""`/v1/conversations`: what a caller asked, kept under an id; asked in by `/v1/answers`."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path, Query

from query_api.auth import owner_of
from query_api.errors import problem_responses
from query_api.middleware import ModelRoute
from query_api.routes.parameters import ServiceOf
from query_api.saved.conversations import StoredConversation, page_of
from schemas.conversations import (
    CONVERSATIONS_PATH,
    Conversation,
    ConversationPage,
    ConversationSummary,
    NewConversation,
    Title,
)

router = APIRouter(tags=["conversations"], route_class=ModelRoute)

ONE = CONVERSATIONS_PATH + "/{conversation}"
Owner = Annotated[str, Depends(owner_of)]
Cursor = Annotated[str | None, Query(max_length=512, description="The `next_cursor` of the page before.")]


async def conversation_of(
    conversation: Annotated[str, Path(max_length=64)], owner: Owner, service: ServiceOf
) -> StoredConversation:
    return await StoredConversation.find(service.saved, owner, conversation)


Found = Annotated[StoredConversation, Depends(conversation_of)]


@router.post(CONVERSATIONS_PATH, status_code=201, summary="Begin a conversation", responses=problem_responses(403, 507))
async def create_conversation(new: NewConversation, owner: Owner, service: ServiceOf) -> ConversationSummary:
    """Kept for this caller: the key that is sent, or all without keys. Ask in it with its id as `conversation` of
    `/v1/answers`."""
    return (await StoredConversation.create(service.saved, owner, new)).summary()


@router.get(CONVERSATIONS_PATH, summary="List conversations", responses=problem_responses(403))
async def list_conversations(
    owner: Owner, service: ServiceOf, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
) -> ConversationPage:
    """The caller's own, the one that was last changed first."""
    await service.saved.wait_until_reached()
    return page_of(service.saved, owner, limit, cursor)


@router.get(ONE, summary="A conversation with its messages", responses=problem_responses(403, 404))
async def get_conversation(
    found: Found, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 200
) -> Conversation:
    """The last messages, in order; `next_cursor` leads to those before."""
    return found.shown(limit, cursor)


@router.patch(ONE, summary="Rename a conversation", responses=problem_responses(403, 404, 507))
async def rename_conversation(found: Found, title: Annotated[Title, Body(embed=True)]) -> ConversationSummary:
    await found.rename(title)
    return found.summary()


@router.delete(ONE, status_code=204, summary="Delete a conversation", responses=problem_responses(403, 404))
async def delete_conversation(found: Found) -> None:
    """With all messages. Kafka drops their records when it compacts the topic."""
    await found.delete()
