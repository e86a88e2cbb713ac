"""What is no request that the app could answer is refused with a problem too, not with a bare 400.

httptools tells a URL apart by 16-bit numbers; one that is longer ends the parsing, before there is a request to give to
the app. uvicorn takes its protocol as a class (`Config(http=…)`), so this is the place to say what is wrong.
"""

from http import HTTPStatus

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from query_api.errors import MEDIA_TYPE, ApiProblem

MAX_URL_BYTES = 65_535
MAX_HEAD_BYTES = 64 * 1024 + MAX_URL_BYTES

TOO_LONG = ApiProblem(
    414,
    "Address too long",
    f"The address of a request has at most {MAX_URL_BYTES:,} bytes. POST /v1/search takes a question in its body.",
)
HEAD_TOO_LARGE = ApiProblem(
    431,
    "Headers too large",
    f"The headers of a request with its address have at most {MAX_HEAD_BYTES:,} bytes. Send fewer or shorter ones.",
)
NO_HTTP = ApiProblem(400, "Not HTTP", "The request is not HTTP/1.1; look at what was sent, or at a proxy in between.")


class HeadRefused(Exception):
    """Ends the parsing; uvicorn answers."""


class ProblemProtocol(HttpToolsProtocol):
    """One connection. An address or headers are refused as soon as they are too long, however much is to come."""

    url = b""
    refusal = NO_HTTP
    in_head = False
    head_bytes = 0
    header_bytes = 0

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.in_head and not self.transport.is_closing():  # what came is of the head alone, or began with its end
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES:
                self.refuse(HEAD_TOO_LARGE)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.in_head, self.head_bytes, self.header_bytes = True, 0, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            self.refusal = TOO_LONG
            raise HeadRefused

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self.header_bytes += len(name) + len(value)
        if self.header_bytes > MAX_HEAD_BYTES:
            self.refusal = HEAD_TOO_LARGE
            raise HeadRefused

    def on_headers_complete(self) -> None:
        self.in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """uvicorn's answer to what it could not parse, in the place of which this stands; it closes the connection."""
        del msg
        self.refuse(self.refusal)

    def refuse(self, problem: ApiProblem) -> None:
        """Answer with this, in the place of the app, and close the connection."""
        body = msgspec.json.encode(problem.body())
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
