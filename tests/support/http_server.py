"""An HTTP server in this process, whose answers a function gives."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Request(NamedTuple):
    """`path` is with its query, names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Response(NamedTuple):
    """`length` is what is said to be sent, where that is not what is."""

    body: bytes = b""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    length: int | None = None


Answer = Callable[[Request], Response | None]
"""None closes the connection without a word."""


@contextmanager
def http_server(answer: Answer, port: int = 0) -> Iterator[str]:
    """Its address, as `http://127.0.0.1:<port>`. Requests are answered in threads of their own."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", 0)))
            response = answer(Request(self.command, self.path, headers, body))
            if response is None:
                return
            length = len(response.body) if response.length is None else response.length
            self.send_response(response.status)
            for name, value in (*response.headers, ("Content-Length", str(length))):
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(response.body)

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = respond  # noqa: N815 -- as http.server calls them

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def files_of(folder: Path) -> Answer:
    """The files of a folder; a folder within it is a page of links, as a package index has them."""

    def answer(request: Request) -> Response:
        path = folder / unquote(urlsplit(request.path).path).strip("/")
        if path.is_dir():
            links = "".join(f'<a href="{each.name}">{each.name}</a>' for each in path.iterdir())
            return Response(links.encode(), headers=[("Content-Type", "text/html")])
        if not path.is_file():
            return Response(status=404)
        return Response(
            path.read_bytes(), headers=[("Content-Type", guess_type(path)[0] or "application/octet-stream")]
        )

    return answer
