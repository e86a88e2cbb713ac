"""A double of the service that holds documents in two partitions and lets go of them as a worker would."""

from typing import Any
from urllib.parse import unquote

import httpx

from query_api.client import ServiceClient


class HoldingService:
    """Each look at the state lets it reach one more tombstone of each partition, unless it is `stuck`."""

    def __init__(self, *ids: str, collection: str = "made") -> None:
        self.held = {document_id: f"0:{number}" for number, document_id in enumerate(ids)}
        self.collection = collection
        self.published: list[tuple[str, str]] = []
        self.reached = {0: 99, 1: 99}
        self.stuck = False
        self.sent_again: tuple[str, ...] = ()
        self.chosen: dict[str, Any] = {"chunking": None, "linking": None}
        self.client = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(self._answer))

    def position(self, number: int) -> tuple[int, int]:
        """Of the tombstone that was published as this one."""
        return number % 2, 100 + number // 2

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path, asked = request.url.raw_path.partition(b"?")[0].decode(), dict(request.url.params)
        document_id = unquote(path.removeprefix("/v1/documents/").removesuffix("/status"))
        match request.method, path:
            case "GET", "/v1/collections":
                count = len(self.held)
                here = {"name": self.collection, "documents": count, "chunks": count, **self.chosen}
                other = {"name": "notes", "documents": 2, "chunks": 2, "chunking": None, "linking": None}
                return httpx.Response(200, json={"collections": [here, other], "notes": []})
            case "GET", "/v1/status":
                if not self.stuck:
                    self.reached = {partition: offset + 1 for partition, offset in self.reached.items()}
                token = ",".join(f"{partition}:{offset}" for partition, offset in self.reached.items())
                return httpx.Response(200, json={"positions": token})
            case "GET", "/v1/documents":
                listed = self.held if asked["collection"] == self.collection else {}
                page = [{"id": document_id, "position": at} for document_id, at in listed.items()]
                return httpx.Response(200, json={"documents": page, "next_cursor": None})
            case "GET", _ if path.endswith("/status"):
                return httpx.Response(200, json={"final": self._let_go(asked["position"])})
            case "DELETE", _:
                self.published.append((asked["collection"], document_id))
                partition, offset = self.position(len(self.published) - 1)
                return httpx.Response(202, json={"token": f"{partition}:{offset}"})
            case unknown:
                raise AssertionError(unknown)

    def _let_go(self, position: str) -> bool:
        partition, offset = map(int, position.split(":"))
        for number, (_, document_id) in enumerate(self.published):
            at, tombstone = self.position(number)
            if tombstone <= self.reached[at] and document_id not in self.sent_again:
                self.held.pop(document_id, None)
        return offset <= self.reached[partition]
