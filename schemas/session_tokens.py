"""The answers to who asks for a session token, in the words of OAuth 2.0 (RFC 6749, section 5.1), or for a ticket."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class SessionToken(BaseModel):
    """Reads for a while as a bearer token; good for every process with the key that asked for it, until it expires or
    that key is changed."""

    access_token: str
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105
    expires_in: int = Field(description="Seconds from now. A stream that is open then continues.")
    scope: Literal["read"] = "read"


class TicketRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    path: str = Field(
        min_length=1,
        max_length=25_000,
        description="Of the stream, as in the address, without the query: `/v1/search`, or "
        "`/v1/documents/{id}/status`.",
        examples=["/v1/search"],
    )


class StreamTicket(BaseModel):
    """Opens one stream at `path`, once, as the parameter `ticket`."""

    ticket: str
    path: str
    expires_in: int = Field(description="Seconds from now, within which the stream is to be opened.")
