"""A model behind HTTP: requests in JSON, answers bounded in bytes and in time, and a sentence for each failure.

Of what an endpoint says only its status reaches a message: the rest may quote a text, or the key.
"""

import time
from collections.abc import Callable, Mapping
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


class ModelEndpoint:
    """One address. Used from several threads."""

    def __init__(
        self,
        name: str,
        base_url: str,
        path: str,
        *,
        model: str,
        api_key: SecretStr | None,
        seconds: float,
        settings: str,
        not_taken: str,
        errors: EndpointErrors,
        follow_redirects: bool = False,
    ) -> None:
        """`name` and `base_url` begin each sentence; `settings` is the prefix of the variables to set; `not_taken` says
        what it refuses with another status, put in for `{}`, and why. `seconds` are those of a whole answer."""
        self.where = f"{name} at {base_url}"
        self._url = f"{base_url}{path}"
        self._model = model
        self._seconds = seconds
        self._settings = settings
        self._not_taken = not_taken
        self._errors = errors
        headers = {"Authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        self._http = httpx.Client(headers=headers, timeout=seconds, follow_redirects=follow_redirects)

    def post(self, body: Mapping[str, Any], max_bytes: int) -> bytes:
        """The bytes of an answer. Raises one of the errors."""
        content = bytearray()
        deadline = time.monotonic() + self._seconds
        try:
            with self._http.stream("POST", self._url, json=body) as response:
                if response.status_code not in _ANSWERED:
                    raise self._failure(response.status_code, retry_after_seconds(response.headers))
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > max_bytes:
                        raise self._errors.unusable(f"{self.where} gave an answer of more than {max_bytes:,} bytes.")
                    if time.monotonic() > deadline:  # the client limits each wait, and an answer may trickle
                        raise httpx.ReadTimeout("too late")
        except httpx.TimeoutException:
            raise self._errors.unavailable(f"{self.where} did not answer within {self._seconds:g} s.", None) from None
        except (httpx.HTTPError, httpx.InvalidURL):  # what is behind it may quote a text or the key
            raise self._errors.unavailable(f"{self.where} cannot be reached, or broke off.", None) from None
        return bytes(content)

    def decoded(self, content: bytes, of: type[T], described: str) -> T:
        """An answer in JSON of this form. One that is cut counts as unavailable."""
        try:
            return msgspec.json.decode(content, type=of)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
        ends = {b"{": b"}", b"[": b"]"}.get(content.lstrip()[:1])
        if ends is not None and not content.rstrip().endswith(ends):
            raise self._errors.unavailable(f"{self.where} gave an answer cut short.", None)
        raise self._errors.unusable(f"{self.where} gave something other than {described}.")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _failure(self, status: int, retry_after: float | None) -> Exception:
        if status == httpx.codes.TOO_MANY_REQUESTS:
            return self._errors.busy(f"{self.where} takes no more just now (429).", retry_after)
        if status in _TRANSIENT or status >= 500:
            return self._errors.unavailable(f"{self.where} failed ({status}).", retry_after)
        if status in (401, 403):
            return self._errors.refused(f"{self.where} refuses the key ({status}): set {self._settings}__API_KEY.")
        if status in (404, 405) or status < 400:
            return self._errors.refused(
                f"{self.where} does not know the model {self._model!r}, or is no such endpoint ({status}): set "
                f"{self._settings}__MODEL or {self._settings}__BASE_URL."
            )
        return self._errors.unusable(f"{self.where} does not take {self._not_taken.format(status)}.")
