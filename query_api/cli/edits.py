"""What the commands that edit the graph have in common: options, and an edit sent."""

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from query_api.cli.app import print_json, service_client
from schemas.terminal import say

By = Annotated[str | None, typer.Option(help="Who says so, as lists are to show it.")]


def send_edit(
    method: Literal["POST", "PUT", "DELETE"],
    path: str,
    body: Mapping[str, Any],
    *,
    as_json: bool,
    url: str | None,
    data_dir: Path | None,
) -> None:
    """Send the fields of the body that are given, and print in which collection and where in the log the edit is."""
    content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
    with closing(service_client(url, data_dir)) as client:
        match method:
            case "POST":
                answer = client.post(path, content)
            case "PUT":
                answer = client.put(path, content)
            case "DELETE":
                answer = client.delete(path)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer['id']} in the collection {answer['collection']}: in the log at {answer['position']}.")
