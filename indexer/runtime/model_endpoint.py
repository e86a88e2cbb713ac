"""A model behind HTTP: requests in JSON, answers bounded in bytes and in time, and a sentence for each failure.

Of what an endpoint says only its status reaches a message: the rest may quote a text, or the key.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, TypeVar

import httpx
import msgspec
from pydantic import SecretStr

from schemas.clock import retry_after_seconds

_TRANSIENT = frozenset({408, 409, 425})  # and all from 500 on
_ANSWERED = (httpx.codes.OK, httpx.codes.CREATED)

T = TypeVar("T")


class EndpointErrors(NamedTuple):
    """What is raised. `unavailable` for what passes: a time-out, no connection, 5xx; `busy` for 429; both with the
    seconds to wait, where these are known. `refused` for a key, a model or an address that is not accepted: 401, 403,
    404, 405, redirections. `unusable` for anything else."""

    unavailable: Callable[[str, float | None], Exception]
    busy: Callable[[str, float | None], Exception]
    refused: Callable[[str], Exception]
    unusable: Callable[[str], Exception]


@dataclass(eq=False)
class ModelAddress:
    """Where a model is, and what is said of its failures. `name` and `base_url` begin each sentence; `settings` is the
    prefix of the variables to set; `not_taken` says what it refuses with another status, put in for `{}`, and why.
    `seconds` are those of a whole answer."""

    name: str
    base_url: str
    _: KW_ONLY
    model: str
    api_key: SecretStr | None
    seconds: float
    settings: str
    not_taken: str
    errors: EndpointErrors

    @property
    def where(self) -> str:
        return f"{self.name} at {self.base_url}"

    def late(self) -> Exception:
        return self.errors.unavailable(f"{self.where} did not answer within {self.seconds:g} s.", None)

    def broken_off(self) -> Exception:
        return self.errors.unavailable(f"{self.where} cannot be reached, or broke off.", None)

    def too_long(self, max_bytes: int) -> Exception:
        return self.errors.unusable(f"{self.where} gave an answer of more than {max_bytes:,} bytes.")

    def failure(self, status: int, retry_after: float | None) -> Exception:
        """What a status other than that of an answer means."""
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return self.errors.busy(f"{self.where} takes no more just now (429).", retry_after)
        if status in _TRANSIENT or status >= 500:
            return self.errors.unavailable(f"{self.where} failed ({status}).", retry_after)
        if status in (401, 403):
            return self.errors.refused(f"{self.where} refuses the key ({status}): set {self.settings}__API_KEY.")
        if status in (404, 405) or status < 400:
            return self.errors.refused(
                f"{self.where} does not know the model {self.model!r}, or is no such endpoint ({status}): set "
                f"{self.settings}__MODEL or {self.settings}__BASE_URL."
            )
        return self.errors.unusable(f"{self.where} does not take {self.not_taken.format(status)}.")


@dataclass(eq=False)
class ModelEndpoint(ModelAddress):
    """One address, asked at a path for whole answers. Used from several threads."""

    path: str
    follow_redirects: bool = False

    def __post_init__(self) -> None:
        self._url = f"{self.base_url}{self.path}"
        headers = {"Authorization": f"Bearer {self.api_key.get_secret_value()}"} if self.api_key else {}
        self._http = httpx.Client(headers=headers, timeout=self.seconds, follow_redirects=self.follow_redirects)

    def post(self, body: Mapping[str, Any], max_bytes: int) -> bytes:
        """The bytes of an answer. Raises one of the errors."""
        content = bytearray()
        deadline = time.monotonic() + self.seconds
        try:
            with self._http.stream("POST", self._url, json=body) as response:
                if response.status_code not in _ANSWERED:
                    raise self.failure(response.status_code, retry_after_seconds(response.headers))
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > max_bytes:
                        raise self.too_long(max_bytes)
                    if time.monotonic() > deadline:  # the client limits each wait, and an answer may trickle
                        raise httpx.ReadTimeout("too late")
        except httpx.TimeoutException:
            raise self.late() from None
        except (httpx.HTTPError, httpx.InvalidURL):  # what is behind it may quote a text or the key
            raise self.broken_off() from None
        return bytes(content)

    def decoded(self, content: bytes, of: type[T], described: str) -> T:
        """An answer in JSON of this form. One that is cut counts as unavailable."""
        try:
            return msgspec.json.decode(content, type=of)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        ends = {b"{": b"}", b"[": b"]"}.get(content.lstrip()[:1])
        if ends is not None and not content.rstrip().endswith(ends):
            raise self.errors.unavailable(f"{self.where} gave an answer cut short.", None)
        raise self.errors.unusable(f"{self.where} gave something other than {described}.")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
