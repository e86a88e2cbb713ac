"""A double of the service: it takes documents, makes them searchable when told, and finds by common words."""

import json
from typing import Any

import httpx

from query_api.client import ServiceClient
from schemas.provenance import USAGE_HEADER

STATUS = {"version": "0.1.0", "generation": "g0001", "embedding_model": "words"}
TIMINGS = {"keyword": 0.001, "texts": 0.002, "total": 0.004}


class PretendService:
    """`behind` is how many looks at the state still come before what was published is searchable, None for for ever."""

    def __init__(self, behind: int | None = 0) -> None:
        self.behind = behind
        self.published: list[dict[str, Any]] = []
        self.searchable: dict[str, dict[str, Any]] = {}
        self.never_indexed: set[str] = set()
        self.refusals: list[dict[str, Any]] = []
        self.confidence: float | None = None
        self.failed_channels: dict[str, str] = {}
        self.asked: list[dict[str, str]] = []
        self.usage: set[str | None] = set()
        self.broken: str | None = None
        self.refused_modes: set[str] = set()
        self.has_reranker = True
        self.client = ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/search":
            self.usage.add(request.headers.get(USAGE_HEADER))
        match request.method, request.url.path:
            case "POST", "/v1/documents":
                return self._take(json.loads(request.content))
            case "GET", "/v1/documents":
                return self._list(dict(request.url.params))
            case "GET", "/v1/status":
                return httpx.Response(200, json=STATUS | {"positions": self._positions()})
            case "GET", "/v1/search" if request.headers["accept"] == "text/event-stream":
                return self._stream(dict(request.url.params))
            case "GET", "/v1/search":
                return self._after(dict(request.url.params))
            case unknown:
                raise AssertionError(unknown)

    def _take(self, batch: list[dict[str, Any]]) -> httpx.Response:
        if self.refusals:
            refused = [{"index": 0, "id": batch[0]["id"], **self.refusals.pop(0)}]
            return httpx.Response(202, json={"token": "", "documents": 0, "accepted": [], "refused": refused})
        self.published += batch
        return httpx.Response(202, json={"token": f"0:{len(self.published) - 1}", "accepted": [], "refused": []})

    def _positions(self) -> str | None:
        return f"0:{len(self.searchable) - 1}" if self.searchable else None

    def _after(self, asked: dict[str, str]) -> httpx.Response:
        if self.behind is None or self.behind > 0:
            self.behind = None if self.behind is None else self.behind - 1
            return httpx.Response(503, json={"title": "Not yet indexed", "detail": f"{asked['after']} is not."})
        for offset, document in enumerate(self.published):
            if document["id"] not in self.never_indexed:
                self.searchable[document["id"]] = document | {"position": f"0:{offset}"}
        return httpx.Response(200, json={"hits": []})

    def _list(self, asked: dict[str, str]) -> httpx.Response:
        """Two documents a page, whatever the limit, so that pages are turned."""
        held = sorted(id_ for id_, each in self.searchable.items() if each["collection"] == asked["collection"])
        start = int(asked.get("cursor", 0))
        page = [{"id": id_, "position": self.searchable[id_]["position"]} for id_ in held[start : start + 2]]
        return httpx.Response(
            200, json={"documents": page, "next_cursor": str(start + 2) if len(held) > start + 2 else None}
        )

    def _stream(self, asked: dict[str, str]) -> httpx.Response:
        if asked["mode"] in self.refused_modes:
            return httpx.Response(422, json={"title": "Invalid request", "detail": f"No mode {asked['mode']}."})
        if asked["reranker"] == "true" and not self.has_reranker:
            return httpx.Response(422, json={"title": "No re-ranker", "detail": "Configure one."})
        self.asked.append(asked)
        words = set(asked["q"].lower().strip("?").split())
        found = [
            id_
            for id_, document in sorted(self.searchable.items())
            if document["collection"] == asked["collection"] and words & set(document["content"].lower()[:-1].split())
        ]
        frames: list[tuple[str, dict[str, Any]]] = [("meta", {})]
        frames += [
            ("hit", {"document_id": id_, "score": 1.0, "confidence": self.confidence})
            for id_ in found[: int(asked["k"])]
        ]
        frames.append(("done", {"timings": TIMINGS, "failed_channels": self.failed_channels}))
        if self.broken == "error":
            frames[-1] = ("error", {"title": "Search not answered", "detail": "The disk is gone."})
        elif self.broken == "cut":
            frames.pop()
        return httpx.Response(
            200, text="".join(f"event: {name}\ndata: {json.dumps(body)}\n\n" for name, body in frames)
        )
