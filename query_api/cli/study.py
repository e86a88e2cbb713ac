"""`thalweg study`: makes cards, a quiz, a concept map or a learning path, and shows it."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, Any, cast, get_args

import typer

from query_api.cli.app import DataDir, Json, Url, print_answer, service_client
from query_api.cli.completion import OneCollection, checked, entities, offered
from schemas.choices import MOST_OF_STUDY, STUDY_PATHS, StudyKind
from schemas.errors import plain_failures

app = typer.Typer()

KINDS = get_args(StudyKind)


@app.command(epilog="Example: thalweg study quiz --collection peps --document pep-0776.rst")
@plain_failures()
def study(
    kind: Annotated[
        str,
        typer.Argument(
            help="cards to fill in, a quiz, a concept map as Mermaid text, or a path from what is needed first.",
            parser=checked(KINDS),
            autocompletion=offered(KINDS),
            metavar="|".join(KINDS),
        ),
    ],
    document: Annotated[str | None, typer.Option(help="Only of this document, by its id.")] = None,
    entity: Annotated[str | None, typer.Option(help="Only of this entity.", autocompletion=entities)] = None,
    collection: OneCollection = None,
    count: Annotated[int | None, typer.Option(min=1, max=MOST_OF_STUDY, help="At most so many.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make something to study of what documents state, and keep it."""
    asked = {"document": document, "entity": entity, "collection": collection, "count": count}
    content = json.dumps({name: value for name, value in asked.items() if value is not None}).encode()
    with closing(service_client(url, data_dir)) as client:
        answer = client.post(STUDY_PATHS[cast("StudyKind", kind)], content)
    print_answer(answer, study_lines(answer), as_json=as_json)


def study_lines(answer: dict[str, Any]) -> Iterator[str]:
    """The questions, then what is right with where it is said; or the map, or the steps."""
    for each in answer["questions"]:
        context = f" [{each['context']}]" if each["context"] else ""
        yield f"{each['question']}. {each['text']}{context}"
        yield from (f"   {chr(ord('a') + at)}) {option}" for at, option in enumerate(each["options"]))
    if answer["questions"]:
        yield "Answers"
    for each in answer["questions"]:
        source = each["explanation"]
        place = f"{source['collection']}/{source['document_id']}"
        yield f"{each['question']}. {each['answer']}: {source['sentence']} [{place}]"
    if answer["mermaid"]:
        yield answer["mermaid"].rstrip()
    for each in answer["steps"]:
        after = ", ".join(f"{reason['step']} ({reason['predicate']})" for reason in each["after"])
        yield f"{each['step']}. {each['concept']['label']}{f', after {after}' if after else ''}"
        if each["definition"]:
            yield f"   {each['definition']['text']} [{each['definition']['source']['document_id']}]"
    yield from answer["notes"]
    yield f"Kept as {answer['id']}: thalweg api GET {STUDY_PATHS[answer['kind']]}/{answer['id']}"
