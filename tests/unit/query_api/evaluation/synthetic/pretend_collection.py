"""A double of a service that has a few documents and what the graph would hold of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

COLLECTION = "notes"


@dataclass
class Kept:
    """A document; `stated` are (field, value), where a value may be another document's name."""

    title: str
    text: str
    names: list[str] = field(default_factory=list)
    stated: list[tuple[str, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)


class PretendCollection:
    """Lists its documents, and answers `get` as the routes for documents, nodes and the graph do."""

    def __init__(self, kept: dict[str, Kept]) -> None:
        self.kept = kept

    def documents(self, collection: str, *, hand_made: bool) -> Iterator[dict[str, Any]]:
        assert not hand_made
        for name, kept in self.kept.items() if collection == COLLECTION else ():
            yield {"id": name, "title": kept.title, "metadata": kept.metadata}

    def get(self, path: str, params: Any = None) -> dict[str, Any]:
        _, _, kind, *rest = path.split("/", 3)
        if kind == "graph":
            return self._graph(params["node"].partition("/")[2])
        name = unquote(rest[0])
        if kind == "documents":
            return {"text": self.kept[name].text}
        kept = self.kept[name.partition("/")[2]]
        return {"neighbours": [{"node": {"id": f"entity {each}", "label": each}} for each in kept.names]}

    def _graph(self, document: str) -> dict[str, Any]:
        """The document's one chunk, what it states and links to; and a chunk of another that links here."""
        kept, key, chunk = self.kept[document], f"{COLLECTION}/{document}", f"chunk of {document}"
        edges = [{"from": key, "to": chunk, "kind": "has_chunk", "weight": 1.0, "label": None}]
        edges += [{"from": "a stranger", "to": key, "kind": "links_to", "weight": 1.0, "label": None}]
        edges += [_states("a stranger", "entity elsewhere", "status (object)")]
        nodes = {"entity elsewhere": {"label": "elsewhere"}}
        for name, value in kept.stated:
            edges.append(_states(chunk, f"entity {kept.names[0]}", f"{name} (subject)"))
            edges.append(_states(chunk, f"entity {value}", f"{name} (object)"))
            nodes[f"entity {value}"] = {"label": value.lower()}
        edges.append(_states(chunk, "entity guess", "status (object)") | {"weight": 0.7})
        nodes |= {"entity guess": {"label": "guess"}, **{f"entity {each}": {"label": each} for each in kept.names}}
        for target in kept.links:
            edges.append({"from": chunk, "to": target, "kind": "links_to", "weight": 1.0, "label": None})
            nodes[target] = {"label": target, "document_id": target}
        return {"nodes": [{"id": id_, "document_id": None} | node for id_, node in nodes.items()], "edges": edges}


def _states(source: str, target: str, label: str) -> dict[str, Any]:
    return {"from": source, "to": target, "kind": "states", "weight": 1.0, "label": label}


def proposals() -> PretendCollection:
    """Six proposals: N 2 replaces N 1; the letter of N 4 names N 3 in a sentence; two are about lamps, years apart."""
    told = {
        1: ("Garden lamps", "Lamps of brass stand along the gravel path and burn oil from dusk onwards each evening."),
        2: ("Electric light", "Copper wires carry current to bulbs of thin glass beside the wooden benches and walls."),
        3: ("Duck pond", "Shallow water with reeds draws herons, ducks and curious children throughout the summer."),
        4: ("Fences", "Iron railings keep visitors from falling into the Duck pond when they lean over to feed birds."),
        5: ("Street lamps", "Posts of iron carry lanterns above the road where coaches pass late on winter evenings."),
        6: ("Benches", "Seats of oak stand beside reeds, herons and water, with curious carvings of children on them."),
    }
    documents = {}
    for number, (title, text) in told.items():
        documents[f"n{number}.md"] = Kept(
            title=f"N {number} – {title}",
            text=f"Created: {1990 + number}\nStatus: {'Final' if number < 4 else 'Draft'}\n\n{text}",
            names=[f"N {number}"],
            stated=[("created", str(1990 + number)), ("status", "Final" if number < 4 else "Draft")],
            metadata={"author": ["Ada", "Ben"] if number % 2 else "Cleo"},
        )
    documents["n2.md"].stated.append(("replaces", "N 1"))
    documents["n2.md"].metadata["replaces"] = "1"
    documents["n3.md"].names.append("Duck pond")
    documents["n4.md"].links.append("n3.md")
    return PretendCollection(documents)
