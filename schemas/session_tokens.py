"""The answer to who asks for a session token, in the words of OAuth 2.0 (RFC 6749, section 5.1)."""

from typing import Literal

from pydantic import BaseModel, Field


class SessionToken(BaseModel):
    """Reads for a while, as `access_token` of a stream or as a bearer token; good for every process with these keys,
    until it expires or a key is changed."""

    access_token: str
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105
    expires_in: int = Field(description="Seconds from now. A stream that is open then goes on.")
    scope: Literal["read"] = "read"
