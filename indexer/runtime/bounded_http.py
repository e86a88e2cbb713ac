"""Requests to the endpoint of a model, whose answer is bounded in bytes and in time."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

from schemas.clock import retry_after_seconds


class AnswerTooLong(Exception):
    """It has more bytes than are read."""


class BoundedAnswer(NamedTuple):
    """`content` is empty unless the status is 200; `retry_after` is in seconds."""

    status: int
    content: bytes
    retry_after: float | None


def post_json(
    client: httpx.Client, url: str, body: Mapping[str, Any], *, seconds: float, max_bytes: int
) -> BoundedAnswer:
    """Send `body` as JSON. `client` limits each wait; `seconds` the whole, for an answer may trickle. Raises
    AnswerTooLong, httpx.TimeoutException, and httpx.HTTPError or httpx.InvalidURL for all else that breaks off."""
    content = bytearray()
    deadline = time.monotonic() + seconds
    with client.stream("POST", url, json=body) as response:
        if response.status_code != httpx.codes.OK:
            return BoundedAnswer(response.status_code, b"", retry_after_seconds(response.headers))
        for piece in response.iter_bytes():
            content += piece
            if len(content) > max_bytes:
                raise AnswerTooLong
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout(f"The answer took more than {seconds:g} s.")
    return BoundedAnswer(response.status_code, bytes(content), None)
