"""The HTTP client of the commands: where the service is, its answers and streams, its problems as failures."""

import json
import random
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay

from schemas.errors import Failure, Unreachable, WrongSetting
from schemas.graph_documents import KINDS
from schemas.provenance import USAGE_HEADER
from schemas.runtime import INSTALLATION_HEADER, find_running

DEFAULT_URL = "http://127.0.0.1:8420"
CONNECT_SECONDS = 5.0
CONNECT_RETRIES = 4  # after 0, .5, 1 and 2 s
SILENCE_SECONDS = 90.0
BUSY_SECONDS = 300.0
RESUME_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)  # before each time that a stream is resumed: a service that restarts

PAGE_DOCUMENTS = 1_000
STREAM = "text/event-stream"

JSONObject = dict[str, Any]


class ServiceUnavailable(Failure):
    """503: not yet indexed, or the log is unavailable. A retry may help."""

    def __init__(self, text: str, retry_after_seconds: float = 1.0) -> None:
        super().__init__(text)
        self.retry_after_seconds = retry_after_seconds


class NotFound(WrongSetting):
    """404 or 405: nothing is there by this name, or not by this method."""


class ServiceBusy(ServiceUnavailable):
    """429, or 503 for too many searches: nothing was started, and the service says when to retry."""


class Refused(WrongSetting):
    """400 or 422: the request is wrong, and the same one will be refused again."""


class MembersRefused(Refused):
    """Of a batch of documents none was taken; `refused` says why, as in an answer."""

    def __init__(self, text: str, refused: list[JSONObject]) -> None:
        super().__init__(text)
        self.refused = refused


class ServerSentEvent(NamedTuple):
    """`data` is its JSON body, `id` the last id up to it, which it is resumed by."""

    name: str
    data: JSONObject
    id: str | None = None


class ServiceAddress(NamedTuple):
    """`installation` is the id of the one that is meant; empty where any that answers there will do."""

    url: str
    installation: str = ""


def locate_service(url: str | None, data_dir: Path, *, named: bool = False) -> ServiceAddress:
    """The service that is given, else the one that is announced in the data directory, else the one at DEFAULT_URL.

    The default is only for machines without a data directory. Raises Unreachable where the user has `named` one, or it
    exists, and no service is announced there: at the default address another installation would answer.
    """
    if url:
        return ServiceAddress(url.rstrip("/"))
    running = find_running(data_dir)
    if running is not None and running.service_url:
        return ServiceAddress(running.service_url.rstrip("/"), running.installation)
    if named or data_dir.exists():
        raise Unreachable(
            f"No query service is running on the data directory {data_dir}, and a service elsewhere is not asked "
            f"instead. Start it with 'thalweg up --data-dir {shlex.quote(str(data_dir))}' (or 'thalweg serve'), name "
            "another directory with --data-dir, or name the service with --url."
        )
    return ServiceAddress(DEFAULT_URL)


class ServiceClient:
    """A client of one service. Its methods raise Unreachable, WrongSetting (bad input), ServiceUnavailable or Failure.

    With `starting`, connections are retried for some seconds: `thalweg up` has announced the service. Requests that are
    refused as ServiceBusy are retried when the service says, for `busy_seconds`. A service that sends nothing for
    `silence_seconds` is Unreachable, and so is one of another than the `installation` that is meant: each request names
    it, and that service does nothing.
    """

    def __init__(
        self,
        url: str,
        api_key: str | None,
        transport: httpx.BaseTransport | None = None,
        *,
        installation: str = "",
        starting: bool = False,
        silence_seconds: float = SILENCE_SECONDS,
        busy_seconds: float = BUSY_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if starting and transport is None:
            transport = httpx.HTTPTransport(retries=CONNECT_RETRIES, trust_env=False)
        if api_key and not (api_key.isascii() and api_key.isprintable()):
            raise WrongSetting("The key has characters that no key of a service has. Copy it again.")
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        if installation:
            headers[INSTALLATION_HEADER] = installation
        self._url = url
        self._sleep = sleep
        self._installation = installation
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(silence_seconds, connect=min(silence_seconds, CONNECT_SECONDS)),
            transport=transport,
            trust_env=False,
        )
        self._retrying, self._retrying_writes = (
            Retrying(
                retry=retry_if_exception_type(retried),
                wait=_retry_after,
                stop=stop_after_delay(busy_seconds),
                sleep=sleep,
                reraise=True,
            )
            for retried in (ServiceBusy, ServiceUnavailable)
        )

    @contextmanager
    def answer(
        self,
        method: str,
        path: str,
        params: Mapping[str, Any] | Sequence[tuple[str, str]] | None = None,
        body: bytes | None = None,
        *,
        accept: str = "*/*",
        last_event_id: str | None = None,
    ) -> Iterator[httpx.Response]:
        """The response to any request, of JSON where it has a body; what it answers is still to be read."""
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": "application/json"})
        headers |= {} if last_event_id is None else {"Last-Event-ID": last_event_id}
        with self._failures():
            request = self._http.build_request(method, path, params=params or None, content=body, headers=headers)  # type: ignore[arg-type]  # of pairs
            with closing(self._retrying(self._send_once, request)) as response:
                yield response

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> JSONObject:
        return self._json("GET", path, params)

    def get_bytes(self, path: str, params: Mapping[str, Any]) -> bytes:
        with self.answer("GET", path, params) as response:
            return response.read()

    def post(self, path: str, body: bytes) -> JSONObject:
        """The answer to a body of JSON."""
        return self._json("POST", path, body=body)

    def put(self, path: str, body: bytes) -> JSONObject:
        """The answer to a body of JSON."""
        return self._json("PUT", path, body=body)

    def patch(self, path: str, body: bytes) -> JSONObject:
        """The answer to a body of JSON."""
        return self._json("PATCH", path, body=body)

    def delete(self, path: str) -> JSONObject:
        """Empty where nothing is answered."""
        return self._json("DELETE", path)

    def publish(self, envelopes: Sequence[bytes]) -> JSONObject:
        """The answer to a batch of documents: `accepted` and `refused` members, by their index. Where the service
        cannot take any now, it is asked again when it says, for `busy_seconds`."""
        body = b"[" + b",".join(envelopes) + b"]"
        try:
            return self._retrying_writes(self.post, "/v1/documents", body)
        except MembersRefused as error:
            return {"token": "", "accepted": [], "refused": error.refused}

    def withdraw(self, collection: str, document_id: str) -> JSONObject:
        """The answer to the deletion of a document, which is retried as `publish` is."""
        return self._retrying_writes(
            self.delete, f"{document_path(document_id)}?{urlencode({'collection': collection})}"
        )

    def document_status(self, collection: str, document_id: str, token: str) -> JSONObject:
        """What became of the write of that token; of the newest, where it is empty."""
        position = {"position": token} if token else {}
        return self.get(f"{document_path(document_id)}/status", {"collection": collection, **position})

    def documents(self, collection: str, *, hand_made: bool = True) -> Iterator[JSONObject]:
        """Every document that the service has in the collection, nodes and edges that people made among them."""
        for media_type in (None, *(KINDS if hand_made else ())):
            params = {"collection": collection, "limit": PAGE_DOCUMENTS}
            params |= {} if media_type is None else {"content_type": media_type}
            yield from self.listed("/v1/documents", "documents", params)

    def listed(self, path: str, key: str, params: Mapping[str, Any]) -> Iterator[JSONObject]:
        """Every item of a list, page by page."""
        page = self.get(path, params)
        yield from page[key]
        while page["next_cursor"] is not None:
            page = self.get(path, {**params, "cursor": page["next_cursor"]})
            yield from page[key]

    def collections_with(self, document_id: str) -> list[str]:
        """Those in which the service lists a document of this id."""
        return [each["collection"] for each in self.get("/v1/documents", {"id": document_id})["documents"]]

    def events(
        self, path: str, params: Mapping[str, Any] | None = None, body: bytes | None = None
    ) -> Iterator[ServerSentEvent]:
        """The frames of a stream, as they come; of POST where there is a body of JSON. Raises Failure for the frame
        `error`."""
        with self.answer("GET" if body is None else "POST", path, params, body, accept=STREAM) as response:
            yield from _checked(parse_events(response.iter_lines()))

    def resumed_events(self, path: str, body: bytes) -> Iterator[ServerSentEvent]:
        """Likewise of the stream that answers a body of JSON, until `done`. Where it breaks off, it continues after the
        last frame that came; after a `reset` it begins again."""
        last: str | None = None
        for pause in (0.0, *RESUME_SECONDS):
            self._sleep(pause)
            try:
                with self.answer("POST", path, body=body, accept=STREAM, last_event_id=last) as response:
                    for event in _checked(parse_events(response.iter_lines())):
                        yield event
                        last = event.id
                        if event.name == "done":
                            return
            except (Unreachable, ServiceUnavailable):
                if last is None or pause == RESUME_SECONDS[-1]:
                    raise
        raise Unreachable(f"The stream from {self._url} broke off before its end. Search again.")

    def leave_no_usage(self) -> None:
        """From now on analytics leave out the searches; provenance records them all the same."""
        self.send_always({USAGE_HEADER: "none"})

    def send_always(self, headers: Mapping[str, str]) -> None:
        """From now on with each request."""
        self._http.headers.update(headers)

    def close(self) -> None:
        self._http.close()

    def _json(
        self, method: str, path: str, params: Mapping[str, Any] | None = None, body: bytes | None = None
    ) -> JSONObject:
        with self.answer(method, path, params, body) as response:
            response.read()
            answer: JSONObject = response.json() if response.content else {}
            return answer

    def _send_once(self, request: httpx.Request) -> httpx.Response:
        """The response, with its body still to be read."""
        response = self._http.send(request, stream=True)
        if self._is_of_another_installation(response):
            response.close()
            has_refused = response.status_code == HTTPStatus.MISDIRECTED_REQUEST
            raise Unreachable(
                f"At {self._url} another installation answers than that of the data directory"
                f"{', and it has refused the request' if has_refused else ''}. Start this one again with 'thalweg up', "
                "or name the service that is meant with --url."
            )
        if response.is_error:
            with closing(response):
                response.read()
            self._check(response)
        return response

    def _is_of_another_installation(self, response: httpx.Response) -> bool:
        """A refusal that names none may come from a proxy, or before the service has read the request."""
        answering = response.headers.get(INSTALLATION_HEADER)
        if not self._installation or (answering is None and response.is_error):
            return False
        return bool(answering != self._installation)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise WrongSetting(
                f"{self._url!r} is not the address of a service, such as {DEFAULT_URL}: {str(error).rstrip('.')}."
            ) from error
        except httpx.TransportError as error:
            raise Unreachable(
                f"No query service answers at {self._url} ({error or type(error).__name__}). "
                "Start one with 'thalweg up' or 'thalweg serve'; name another with --url or --data-dir."
            ) from error
        except json.JSONDecodeError as error:
            raise Failure(f"What answers at {self._url} is not a Thalweg service.") from error

    def _check(self, response: httpx.Response) -> None:
        if not response.is_error:
            return
        reason = refused = None
        try:
            problem = response.json()
            text, reason = f"{problem['title']}: {problem['detail']}", problem.get("reason")
            refused = problem.get("refused")
        except (json.JSONDecodeError, KeyError, TypeError):
            text = f"{self._url} answered {response.status_code} {response.reason_phrase}."
        if response.status_code == 401:
            raise WrongSetting(f"{text} Put it into THALWEG_SERVICE__API_KEY.")
        if refused and response.status_code != 503:
            raise MembersRefused(text, refused)
        if response.status_code in {400, 422} or reason == "unknown_collection":
            raise Refused(text)
        retry_after_seconds = _seconds(response.headers.get("Retry-After"))
        if response.status_code == 429 or reason == "overloaded":
            raise ServiceBusy(text, retry_after_seconds)
        if response.status_code in {404, 405}:
            raise NotFound(text)
        raise ServiceUnavailable(text, retry_after_seconds) if response.status_code == 503 else Failure(text)


def _seconds(retry_after: str | None) -> float:
    """Of a Retry-After header; 1 for one that is missing or a date."""
    return float(retry_after) if retry_after is not None and retry_after.isdecimal() else 1.0


def _retry_after(state: RetryCallState) -> float:
    """Seconds that a busy service asks to wait, with a jitter of up to half as much."""
    error = state.outcome.exception() if state.outcome else None
    seconds = error.retry_after_seconds if isinstance(error, ServiceUnavailable) else 1.0
    return seconds * random.uniform(1.0, 1.5)


def parse_events(lines: Iterable[str]) -> Iterator[ServerSentEvent]:
    """Server-Sent Events from their lines (WHATWG HTML, 9.2.6), comments left out; `data` is to be JSON."""
    last_id: str | None = None
    name: str = "message"
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield ServerSentEvent(name, json.loads("\n".join(data)), last_id)
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
        elif field == "id":
            last_id = value


def _checked(events: Iterable[ServerSentEvent]) -> Iterator[ServerSentEvent]:
    for event in events:
        if event.name == "error":
            raise Failure(f"{event.data.get('title', 'The stream failed')}: {event.data.get('detail', '')}")
        yield event


def document_path(document_id: str) -> str:
    """The document's route; dots too are encoded, for `..` in a path would be taken for a way up."""
    return "/v1/documents/" + quote(document_id, safe="").replace(".", "%2E")


def document_positions(client: ServiceClient, collection: str) -> dict[str, str]:
    """{document id: position} of every document the service lists in the collection."""
    return {document["id"]: document["position"] for document in client.documents(collection)}
