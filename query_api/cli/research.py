"""`thalweg research`: the steps of a research as they end, and its note."""

import json
from contextlib import closing
from typing import Annotated
from urllib.parse import quote

import typer

from query_api.cli import app as commands
from query_api.cli.app import DataDir, Json, Url, print_json
from query_api.cli.completion import collections
from schemas.choices import PlanForm
from schemas.errors import plain_failures

app = typer.Typer()


@app.command(epilog="Example: thalweg research 'what replaced PEP 102, and why' --collection peps --save")
@plain_failures()
def research(
    question: Annotated[str, typer.Argument(help="The question, or a claim to check.", metavar="QUESTION")],
    collection: Annotated[
        str | None, typer.Option(help="Search this one only.", show_default="all", autocompletion=collections)
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=4, help="Rounds of searches, at most.")] = 3,
    sentences: Annotated[int, typer.Option(min=1, max=20, help="Sentences of the note, at most.")] = 8,
    plan_form: Annotated[
        PlanForm, typer.Option(help="What takes the question apart: rules, or the service's language model.")
    ] = "rules",
    save: Annotated[bool, typer.Option("--save", help="Publish the note as a document.")] = False,
    save_to: Annotated[str, typer.Option(help="The collection that it is saved in.")] = "research",
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Search in rounds until nothing new comes, and print a note of sentences, each with its source."""
    asked = {"q": question, "collection": collection, "rounds": rounds, "sentences": sentences}
    body = json.dumps(asked | {"plan_form": plan_form, "save": save, "save_to": save_to}).encode()
    with closing(commands.service_client(url, data_dir)) as client:
        if as_json:
            print_json(client.post("/v1/research", body))
            return
        from query_api.cli.display import PlainConsole, show_answer, show_step

        console = PlainConsole(soft_wrap=True)
        for name, frame, _ in client.events("/v1/research", body=body):
            if name == "step":
                show_step(console, frame)
            elif name == "done":
                show_answer(console, frame | {"refused": False}, question)
                if saved := frame["saved"]:
                    path = f"/v1/documents/{saved['id']}?collection={quote(saved['collection'])}"
                    console.print(f"Saved as {saved['collection']}/{saved['id']}: thalweg api GET '{path}'")
