"""Asking a running service from the command line: where it is, its answers as they stream, its problems in words."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from schemas.discovery import find_running
from schemas.exits import Failure, Unreachable, WrongSetting

DEFAULT_URL = "http://127.0.0.1:8420"
CONNECT_SECONDS = 5.0
CONNECT_RETRIES = 4  # after 0, .5, 1 and 2 s
SILENCE_SECONDS = 90.0

JSONObject = dict[str, Any]


class NotNow(Failure):
    """503: what was asked for is not there yet, or the log is out of reach. Trying again may help."""


class SentEvent(NamedTuple):
    """A frame as it came; `data` is its JSON body."""

    name: str
    data: JSONObject


def locate_service(url: str | None, data_dir: Path, *, named: bool = False) -> str:
    """The service's address: the one given, else that of what runs on the data directory, else the default one.

    Raises Unreachable where somebody has `named` the data directory and it is none: what listens at the default address
    would answer from another one. On one that holds stores a service may run by itself, which nothing announces.
    """
    if url:
        return url.rstrip("/")
    running = find_running(data_dir)
    if running is not None:
        return running.service_url.rstrip("/")
    if named and not (data_dir / "CURRENT").exists():
        raise Unreachable(
            f"{data_dir} is no data directory, and nothing that 'thalweg up' started runs on it. Start it with "
            "'thalweg up', name its --data-dir, or name a service that runs by itself with --url."
        )
    return DEFAULT_URL


class ServiceClient:
    """A client of one service. Its methods raise Unreachable, WrongSetting (bad input), NotNow or Failure.

    With `coming_up` a service that does not listen yet is asked again for some seconds: `thalweg up` has announced it.
    """

    def __init__(
        self, url: str, api_key: str | None, transport: httpx.BaseTransport | None = None, *, coming_up: bool = False
    ) -> None:
        if coming_up and transport is None:
            transport = httpx.HTTPTransport(retries=CONNECT_RETRIES, trust_env=False)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._url = url
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            transport=transport,
            trust_env=False,
        )

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> JSONObject:
        with self._failures():
            response = self._http.get(path, params=params)
            self._check(response)
            answer: JSONObject = response.json()
            return answer

    def get_bytes(self, path: str, params: Mapping[str, Any]) -> bytes:
        with self._failures():
            response = self._http.get(path, params=params)
            self._check(response)
            return response.content

    def post(self, path: str, body: bytes) -> JSONObject:
        """The answer to a body of JSON."""
        return self._send("POST", path, body)

    def put(self, path: str, body: bytes) -> JSONObject:
        """The answer to a body of JSON."""
        return self._send("PUT", path, body)

    def delete(self, path: str) -> JSONObject:
        return self._send("DELETE", path, None)

    def events(self, path: str, params: Mapping[str, Any]) -> Iterator[SentEvent]:
        """The frames of a stream, as they come."""
        with (
            self._failures(),
            self._http.stream("GET", path, params=params, headers={"Accept": "text/event-stream"}) as response,
        ):
            if response.is_error:
                response.read()
            self._check(response)
            yield from parse_events(response.iter_lines())

    def close(self) -> None:
        self._http.close()

    def _send(self, method: str, path: str, body: bytes | None) -> JSONObject:
        with self._failures():
            headers = {} if body is None else {"Content-Type": "application/json"}
            response = self._http.request(method, path, content=body, headers=headers)
            self._check(response)
            answer: JSONObject = response.json()
            return answer

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise WrongSetting(
                f"{self._url!r} is no address of a service, such as {DEFAULT_URL}: {str(error).rstrip('.')}."
            ) from error
        except httpx.TransportError as error:
            raise Unreachable(
                f"No query service answers at {self._url} ({error or type(error).__name__}). "
                "Start one with 'thalweg up' or 'thalweg serve', or name another with --url."
            ) from error
        except json.JSONDecodeError as error:
            raise Failure(f"What answers at {self._url} is no Thalweg service.") from error

    def _check(self, response: httpx.Response) -> None:
        if not response.is_error:
            return
        reason = None
        try:
            problem = response.json()
            text, reason = f"{problem['title']}: {problem['detail']}", problem.get("reason")
        except (json.JSONDecodeError, KeyError, TypeError):
            text = f"{self._url} answered {response.status_code} {response.reason_phrase}."
        if response.status_code == 401:
            raise WrongSetting(f"{text} Put it into THALWEG_SERVICE__API_KEY.")
        if response.status_code in {400, 422} or reason == "unknown_collection":
            raise WrongSetting(text)
        raise NotNow(text) if response.status_code == 503 else Failure(text)


def parse_events(lines: Iterable[str]) -> Iterator[SentEvent]:
    """Server-Sent Events from their lines (WHATWG HTML, 9.2.6), comments left out; `data` is to be JSON."""
    name: str = "message"
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield SentEvent(name, json.loads("\n".join(data)))
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
