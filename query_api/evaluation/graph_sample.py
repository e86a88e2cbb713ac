"""Entities and statements of a running service at random, each with the sentence and document it is from, for a person
to judge."""

from typing import TYPE_CHECKING, Any

from rich.markup import escape

from query_api.client import ServiceClient
from schemas.progress_bars import Bars

if TYPE_CHECKING:
    from rich.console import Console

Evidence = dict[str, Any]
NO_EVIDENCE: Evidence = {"sentence": None, "document_id": None, "title": None}


def draw_sample(client: ServiceClient, collection: str | None, size: int, seed: int, bars: Bars) -> dict[str, Any]:
    """`size` entities and as many statements, as JSON; fewer where there are no more. The same seed draws the same from
    an unchanged graph. Raises the client's failures."""
    params: dict[str, Any] = {"sample": seed, "limit": size} | (
        {} if collection is None else {"collection": collection}
    )
    drawn = client.get("/v1/entities", params)["entities"]
    looked_up = bars("Look up entities", len(drawn))
    entities = []
    for entity in drawn:
        detail = client.get(f"/v1/entities/{entity['id']}", {"limit": 1})
        kept = {name: entity[name] for name in ("id", "collection", "label", "type", "confidence", "mentions")}
        entities.append(kept | _place(detail.get("example")))
        looked_up.advance()
    statements = [
        {
            "subject": each["subject"]["label"],
            "predicate": each["predicate"],
            "object": each["object"]["label"],
            "strength": each["strength"],
            **_place(next(iter(each["evidence"]), None)),
        }
        for each in client.get("/v1/statements", params)["statements"]
    ]
    return {"collection": collection, "seed": seed, "entities": entities, "statements": statements}


def show_sample(console: "Console", sample: dict[str, Any]) -> None:
    """Numbered, a line for each thing and one for its sentence."""
    for title, found in (("Entities", sample["entities"]), ("Statements", sample["statements"])):
        console.print(f"{title} ({len(found)})")
        for number, each in enumerate(found, 1):
            what = (
                f"{each['label']}: {each['type']}"
                if "label" in each
                else f"{each['subject']} -{each['predicate']}-> {each['object']}"
            )
            console.print(escape(f"{number:4} {what}"))
            console.print(escape(f"     {each['sentence'] or '(no sentence)'} [{each['document_id']}]"))


def _place(evidence: Evidence | None) -> Evidence:
    return {name: (evidence or NO_EVIDENCE)[name] for name in NO_EVIDENCE}
