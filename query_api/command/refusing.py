"""What is no request that the app could answer is refused with a problem too, not with a bare 400.

httptools tells a URL apart by 16-bit numbers; one that is longer ends the parsing, before there is a request to give to
the app. uvicorn takes its protocol as a class (`Config(http=…)`), so this is the place to say what is wrong.
"""

from http import HTTPStatus

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from query_api.problems import MEDIA_TYPE, ApiProblem

MAX_URL_BYTES = 65_535

TOO_LONG = ApiProblem(
    414,
    "Address too long",
    f"The address of a request has at most {MAX_URL_BYTES:,} bytes. POST /v1/search takes a question in its body.",
)
NO_HTTP = ApiProblem(400, "Not HTTP", "The request is not HTTP/1.1; look at what was sent, or at a proxy in between.")


class UrlTooLong(Exception):
    """Ends the parsing; uvicorn answers."""


class ProblemProtocol(HttpToolsProtocol):
    """One connection. A URL is refused as soon as it is too long, however much of it is still to come."""

    url = b""

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MAX_URL_BYTES:
            raise UrlTooLong

    def send_400_response(self, msg: str) -> None:
        """uvicorn's answer to what it could not parse, in the place of which this stands; it closes the connection."""
        del msg
        self.refuse(TOO_LONG if len(self.url) > MAX_URL_BYTES else NO_HTTP)

    def refuse(self, problem: ApiProblem) -> None:
        """Answer with this, in the place of the app, and close the connection."""
        body = msgspec.json.encode(problem.body())
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
