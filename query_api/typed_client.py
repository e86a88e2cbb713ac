"""`thalweg.Client` and `thalweg.AsyncClient`: the service for programs, its answers as the models of `schemas/`."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import BaseModel, ValidationError

from query_api.cli.app import service_client
from query_api.client import JSONObject, ServiceClient
from schemas.answers import Answer
from schemas.api import BatchAccepted, DocumentStatus, WriteAccepted
from schemas.conversations import CONVERSATIONS_PATH, Conversation, ConversationPage, ConversationSummary
from schemas.errors import Failure, WrongSetting
from schemas.frames import PARTS, Reset, SearchFrame
from schemas.hits import SearchAnswer
from schemas.ids import DEFAULT_COLLECTION

Frame = SearchFrame | Reset
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
P = ParamSpec("P")


class Client(AbstractContextManager["Client", None]):
    """A client of the service at `url`, else of the one that commands ask here; with the key, else that of the settings
    (THALWEG_SERVICE__API_KEY). Threads may share it. `service` sends the requests, in place of one made of these.

    Parameters are those of `SearchRequest`; None is for one that is left out. Methods raise Failure: Unreachable,
    WrongSetting for bad input or a wrong key, ServiceUnavailable also where `after` is not indexed in time. Where the
    service is busy they ask again when it says, for five minutes.
    """

    def __init__(self, url: str | None = None, key: str | None = None, service: ServiceClient | None = None) -> None:
        self._service = service or service_client(url, None, key=key)

    def search(self, /, q: str, **parameters: Any) -> SearchAnswer:
        """The hits, and what was asked for besides."""
        return _read(SearchAnswer, self._service.post("/v1/search", _json({"q": q} | parameters)))

    def ask(self, /, q: str, **parameters: Any) -> Answer:
        """Sentences that answer, each with its source; `refused` where nothing that was found does. In the conversation
        of the id `conversation` a question may follow those before it, and is kept with its answer."""
        return _read(Answer, self._service.post("/v1/answers", _json({"q": q} | parameters))["answer"])

    def stream(self, q: str, **parameters: Any) -> Generator[Frame, None, None]:
        """The frames as they are final, the last one Done; resumed where it breaks off. Reset: forget those before."""
        path = "/v1/search" if parameters.get("conversation") is None else "/v1/answers"
        for name, data, _ in self._service.resumed_events(path, _json({"q": q} | parameters)):
            kind: type[Frame] | None = Reset if name == "reset" else PARTS.get(name)  # type: ignore[call-overload]  # of any name
            if kind is not None:  # of a newer service
                yield _read(kind, data)

    def begin_conversation(self, /, **scope: Any) -> ConversationSummary:
        """`title`, `collection` and `documents`, each of which may be left out, as in `NewConversation`."""
        return _read(ConversationSummary, self._service.post(CONVERSATIONS_PATH, _json(scope)))

    def conversations(self, limit: int = 50, cursor: str | None = None) -> ConversationPage:
        """The key's own, the one that was last changed first."""
        return _read(ConversationPage, self._service.get(CONVERSATIONS_PATH, _page(limit, cursor)))

    def conversation(self, conversation_id: str, limit: int = 200, cursor: str | None = None) -> Conversation:
        """With its last messages, or the last before the cursor."""
        return _read(Conversation, self._service.get(f"{CONVERSATIONS_PATH}/{conversation_id}", _page(limit, cursor)))

    def rename_conversation(self, conversation_id: str, title: str) -> ConversationSummary:
        body = _json({"title": title})
        return _read(ConversationSummary, self._service.patch(f"{CONVERSATIONS_PATH}/{conversation_id}", body))

    def delete_conversation(self, conversation_id: str) -> None:
        self._service.delete(f"{CONVERSATIONS_PATH}/{conversation_id}")

    def publish(self, documents: Iterable[Mapping[str, Any]]) -> BatchAccepted:
        """Publish up to 1,000 envelopes. `token` covers those that were accepted; `refused` says why others were not,
        and the token is empty where that is all."""
        answer = self._service.publish([_json(each) for each in documents])
        return _read(BatchAccepted, {"documents": len(answer["accepted"]), **answer})

    def delete(self, document_id: str, collection: str = DEFAULT_COLLECTION) -> WriteAccepted:
        """Delete a document; it is no error where there is none."""
        return _read(WriteAccepted, self._service.withdraw(collection, document_id))

    def status(self, document_id: str, collection: str = DEFAULT_COLLECTION, token: str = "") -> DocumentStatus:
        """What became of the write of that token, else of the document's newest."""
        return _read(DocumentStatus, self._service.document_status(collection, document_id, token))

    def close(self) -> None:
        self._service.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _in_thread(
    method: Callable[Concatenate[Client, P], T],
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    """The same method of an AsyncClient."""

    @wraps(method)
    async def run(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self.threads.submit(method, self.client, *args, **kwargs))

    return run


class AsyncClient(AbstractAsyncContextManager["AsyncClient", None]):
    """A Client whose methods are awaited. Each call runs in a thread, 32 at once; one that is cancelled is left to its
    end, and its answer is dropped."""

    def __init__(self, url: str | None = None, key: str | None = None, service: ServiceClient | None = None) -> None:
        self.client = Client(url, key, service)
        self.threads = ThreadPoolExecutor(32, thread_name_prefix="thalweg-client")

    search = _in_thread(Client.search)
    ask = _in_thread(Client.ask)
    begin_conversation = _in_thread(Client.begin_conversation)
    conversations = _in_thread(Client.conversations)
    conversation = _in_thread(Client.conversation)
    rename_conversation = _in_thread(Client.rename_conversation)
    delete_conversation = _in_thread(Client.delete_conversation)
    publish = _in_thread(Client.publish)
    delete = _in_thread(Client.delete)
    status = _in_thread(Client.status)

    async def stream(self, q: str, **parameters: Any) -> AsyncIterator[Frame]:
        """As Client.stream."""
        frames = self.client.stream(q, **parameters)
        reading = self.threads.submit(next, frames, None)
        try:
            while (frame := await asyncio.wrap_future(reading)) is not None:
                yield frame
                reading = self.threads.submit(next, frames, None)
        finally:
            reading.add_done_callback(lambda _: frames.close())  # not before: a thread may still be in it

    async def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.client.close()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _json(fields: Mapping[str, Any]) -> bytes:
    """Raises WrongSetting."""
    try:
        return json.dumps({name: value for name, value in fields.items() if value is not None}).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise WrongSetting(f"This cannot be sent as JSON: {error}. Make text or numbers of it.") from error


def _page(limit: int, cursor: str | None) -> JSONObject:
    return {"limit": limit} | ({} if cursor is None else {"cursor": cursor})


def _read(model: type[M], answer: JSONObject) -> M:
    """Raises Failure."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        what = f"The service sent a {model.__name__} that this version of the client cannot read"
        raise Failure(f"{what}, at {error.errors()[0]['loc']}. Use the version that the service has.") from error
