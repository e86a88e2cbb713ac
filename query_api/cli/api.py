"""`thalweg api`: any request to the service, for programs and for what has no command of its own."""

import json
import re
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl

import typer

from query_api.cli import app as commands
from query_api.cli.app import DataDir, Url, print_json
from query_api.cli.completion import offered, routes
from schemas.errors import Failure, WrongSetting, plain_failures
from schemas.terminal import plain_json, say

if TYPE_CHECKING:
    import httpx

    from query_api.client import ServiceClient

app = typer.Typer()

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
WITH_BODY = ("POST", "PUT", "PATCH")
STREAM = "text/event-stream"


@app.command(epilog="Example: thalweg api GET /v1/retrievals --query since=2h --query limit=5")
@plain_failures()
def api(
    method: Annotated[
        str | None,
        typer.Argument(help="GET, POST, PUT, PATCH or DELETE.", autocompletion=offered(METHODS), metavar="METHOD"),
    ] = None,
    path: Annotated[
        str | None, typer.Argument(help="The route, such as /v1/status.", autocompletion=routes, metavar="PATH")
    ] = None,
    query: Annotated[
        list[str] | None, typer.Option("--query", "-q", help="A parameter, name=value; may be repeated.")
    ] = None,
    body: Annotated[
        str | None, typer.Option(help="The JSON to send: itself, a file that holds it, or - for standard input.")
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Ask for the answer as a stream of events.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as it came, on a terminal too.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Send any request to the service and print its answer. Without PATH, list the routes.

    JSON is laid out on a terminal, and printed as it came elsewhere; a stream is a line of JSON for each event. An
    answer that is an error ends with exit code 1.
    """
    from query_api.client import NotFound, Refused

    verb = _method(method)
    target, parameters = (None, []) if path is None else _path(path)
    parameters += _parameters(query or ())
    content = None if body is None else _content(verb, body)
    with closing(commands.service_client(url, data_dir)) as client:
        if target is None:
            say("\n".join(_routes(_described(client), verb)))
            return
        try:
            with client.answer(verb, target, parameters, content, accept=STREAM if stream else "*/*") as response:
                _print(response, as_json=as_json)
        except NotFound as error:
            _require_route(_described(client), verb, target)
            raise Failure(str(error)) from error
        except Refused as error:
            raise Failure(str(error)) from error


def _method(given: str | None) -> str:
    """In capitals; empty for none. Raises WrongSetting for what is not a method of the service."""
    verb = (given or "").upper()
    if verb.startswith("/"):
        raise WrongSetting(f"The method comes first: thalweg api GET {given}")
    if verb and verb not in METHODS:
        raise WrongSetting(f"{given!r} is not a method of the service: it takes GET, POST, PUT and DELETE.")
    return verb


def _path(given: str) -> tuple[str, list[tuple[str, str]]]:
    """The path, and the parameters in it. Raises WrongSetting for what is not a path."""
    if "://" in given or given.startswith("//"):
        raise WrongSetting(f"{given!r} is a whole address: give its path alone, and the service by --url.")
    if not given.startswith("/"):
        raise WrongSetting(f"{given!r} does not begin with a slash: routes do, such as /v1/status.")
    if "#" in given or not given.isprintable():
        raise WrongSetting(f"{given!r} is not a path: write # and control characters as %23 and the like.")
    path, _, parameters = given.partition("?")
    return path, parse_qsl(parameters, keep_blank_values=True)


def _parameters(given: Sequence[str]) -> list[tuple[str, str]]:
    pairs = [each.partition("=") for each in given]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise WrongSetting(f"--query {name!r} is not name=value.")
    return [(name, value) for name, _, value in pairs]


def _content(verb: str, given: str) -> bytes:
    """The JSON that is given. Raises WrongSetting for what is not JSON, and for a method that sends none."""
    if verb not in WITH_BODY:
        raise WrongSetting(f"{verb or 'A list of routes'} takes no --body: parameters are given by --query name=value.")
    if given == "-":
        return _checked(sys.stdin.buffer.read(), "Standard input")
    if given.lstrip()[:1] in ("{", "["):
        return _checked(given.encode(errors="surrogateescape"), "--body")
    try:
        content = Path(given).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WrongSetting(f"--body {given[:80]!r} is neither a JSON object or list nor a file: {reason}.") from error
    return _checked(content, given)


def _checked(content: bytes, what: str) -> bytes:
    try:
        json.loads(content)
    except (ValueError, RecursionError) as error:
        raise WrongSetting(f"{what} is not JSON: {error}.") from error
    return content


def _print(response: "httpx.Response", *, as_json: bool) -> None:
    """Raises Failure where a stream ends with an error."""
    from query_api.client import parse_events

    kind = response.headers.get("content-type", "").partition(";")[0]
    if kind == STREAM:
        for name, data, _ in parse_events(response.iter_lines()):
            print(plain_json(json.dumps({"event": name, "data": data}, ensure_ascii=False)), flush=True)
            if name == "error":
                raise Failure(f"{data.get('title', 'The stream failed')}: {data.get('detail', '')}")
    elif not sys.stdout.isatty():
        for part in response.iter_bytes():
            sys.stdout.buffer.write(part)
        sys.stdout.buffer.flush()
    elif kind != "application/json":
        say(response.read().decode(errors="replace"))
    elif as_json:
        print(plain_json(response.read().decode()))
    else:
        print_json(json.loads(response.read()))


def _described(client: "ServiceClient") -> dict[str, dict[str, Any]]:
    """{path: {method: operation}} as the service describes itself."""
    paths: dict[str, dict[str, Any]] = client.get("/openapi.json")["paths"]
    return paths


def _routes(described: dict[str, dict[str, Any]], verb: str) -> list[str]:
    """A line for each route of the method, or of any where it is empty."""
    found = [
        (method.upper(), path, operation.get("summary", ""))
        for path, operations in described.items()
        for method, operation in operations.items()
        if not verb or method.upper() == verb
    ]
    width = max((len(path) for _, path, _ in found), default=0)
    return [f"{method:<6}  {path:<{width}}  {summary}" for method, path, summary in found]


def _require_route(described: dict[str, dict[str, Any]], verb: str, path: str) -> None:
    """Lists the routes and raises WrongSetting, with those most like it, where the path is none of them."""
    from difflib import get_close_matches

    known = [each for each in described if re.fullmatch(re.sub(r"\\{\w+\\}", ".+", re.escape(each)), path)]
    taken = {method.upper() for each in known for method in described[each]}
    if verb in taken:
        return
    if taken:
        raise WrongSetting(f"{path} takes {', '.join(sorted(taken))}, not {verb}.")
    say("\n".join(_routes(described, "")), error=True)
    similar = get_close_matches(path, described, n=3)
    hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
    raise WrongSetting(f"The service has no route {path}; above are those it has.{hint}")
