"""A collection as a running service has it, read over HTTP alone: texts, fields, and what stands in relation to what.

A document's fields are its metadata and what its header states, which the graph holds as statements of full confidence.
A relation is such a field whose value names another document, a link one that its text makes.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from schemas.errors import WrongSetting

PAGE_DOCUMENTS = 1_000
MOST_NODES = 2_000
AT_ONCE = 2
STATED = 1.0
MOST_VALUE_CHARACTERS = 60

JSONObject = dict[str, Any]


class Source(Protocol):
    """What is read: `ServiceClient`, or a double."""

    def get(self, path: str, params: Mapping[str, Any] | None = None) -> JSONObject: ...


class IndexedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """`names` are what the document is called, its title first; `fields` {name: values}; `relations` (field, document
    id) and `links` document ids, each without the document itself."""

    id: str
    title: str
    text: str
    names: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    relations: tuple[tuple[str, str], ...]
    links: tuple[str, ...]


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one document before the others are: `about` and `stated` name entities by id."""

    id: str
    title: str
    text: str
    about: Mapping[str, str]
    metadata: Mapping[str, Any]
    stated: tuple[tuple[str, str, str], ...]
    links: tuple[str, ...]


def read_collection(
    source: Source, collection: str, begin: Callable[[str, int], Callable[[int], None]]
) -> tuple[IndexedDocument, ...]:
    """Every document of the collection, by id. Raises WrongSetting for an empty one, and the client's failures."""
    listed = _listed(source, collection)
    if not listed:
        raise WrongSetting(
            f"The collection {collection!r} is empty, or there is none. Load it, or name another collection."
        )
    advance = begin(f"read: {collection}", len(listed))

    def read(summary: JSONObject) -> _Read:
        found = _read(source, collection, summary)
        advance(1)
        return found

    with ThreadPoolExecutor(AT_ONCE) as threads:
        documents = list(threads.map(read, listed))
    return _joined(documents)


def _listed(source: Source, collection: str) -> list[JSONObject]:
    found: list[JSONObject] = []
    asked: JSONObject = {"collection": collection, "limit": PAGE_DOCUMENTS}
    while True:
        page = source.get("/v1/documents", asked)
        found += page["documents"]
        if page["next_cursor"] is None:
            return sorted(found, key=lambda summary: str(summary["id"]))
        asked = {**asked, "cursor": page["next_cursor"]}


def _read(source: Source, collection: str, summary: JSONObject) -> _Read:
    key = f"{collection}/{summary['id']}"
    detail = source.get(f"/v1/documents/{quote(summary['id'], safe='')}", {"collection": collection})
    about = source.get(f"/v1/nodes/{quote(key, safe='')}", {"kinds": "about", "limit": PAGE_DOCUMENTS})
    around = source.get(
        "/v1/graph",
        {"node": key, "depth": 2, "kinds": ["has_chunk", "states", "links_to"], "limit": MOST_NODES, "outward": True},
    )
    nodes = {node["id"]: node for node in around["nodes"]}
    own = {edge["to"] for edge in around["edges"] if edge["kind"] == "has_chunk" and edge["from"] == key}
    leaving = [edge for edge in around["edges"] if edge["from"] in own]
    subjects = {each["node"]["id"]: str(each["node"]["label"]) for each in about["neighbours"]}
    of_itself = {
        edge["label"].removesuffix(" (subject)")
        for edge in leaving
        if edge["kind"] == "states" and edge["label"].endswith(" (subject)") and edge["to"] in subjects
    }
    stated = [
        (edge["label"].removesuffix(" (object)"), edge["to"], str(nodes[edge["to"]]["label"]))
        for edge in leaving
        if edge["kind"] == "states" and edge["label"].endswith(" (object)") and edge["weight"] >= STATED
    ]
    return _Read(
        id=summary["id"],
        title=summary["title"],
        text=detail["text"],
        about=subjects,
        metadata=summary["metadata"],
        stated=tuple(sorted(fact for fact in stated if fact[0] in of_itself)),
        links=tuple(sorted({str(nodes[edge["to"]]["document_id"]) for edge in leaving if edge["kind"] == "links_to"})),
    )


def _joined(documents: Iterable[_Read]) -> tuple[IndexedDocument, ...]:
    """Each with its relations to the others: an entity that one document alone is about stands for that document."""
    read = list(documents)
    known = {document.id for document in read}
    about: dict[str, list[str]] = {}
    for document in read:
        for entity in document.about:
            about.setdefault(entity, []).append(document.id)
    named = {entity: ids[0] for entity, ids in about.items() if len(ids) == 1}
    return tuple(
        IndexedDocument(
            id=document.id,
            title=document.title,
            text=document.text,
            names=tuple(dict.fromkeys([document.title, *sorted(document.about.values())])),
            fields=_fields(document, named),
            relations=tuple(
                sorted(
                    {
                        (field, named[entity])
                        for field, entity, _ in document.stated
                        if entity in named and named[entity] != document.id
                    }
                )
            ),
            links=tuple(link for link in document.links if link != document.id and link in known),
        )
        for document in read
    )


def _fields(document: _Read, named: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Metadata and stated values, spelt as the text spells them; not those that name documents, or run on."""
    values: dict[str, dict[str, str]] = {}
    naming = {field for field, entity, _ in document.stated if entity in named}
    for field, value in _flat(document.metadata):
        if field.lower() in naming:
            continue
        values.setdefault(field.lower(), {}).setdefault(value.lower(), value)
    lowered = document.text.lower()
    same_length = len(lowered) == len(document.text)
    for field, entity, label in document.stated:
        if entity not in named:
            at = lowered.find(label.lower()) if same_length else -1
            spelt = document.text[at : at + len(label)] if at >= 0 else label
            values.setdefault(field, {}).setdefault(label.lower(), spelt)
    return {
        field: tuple(value for _, value in sorted(held.items()))
        for field, held in sorted(values.items())
        if all(0 < len(value) <= MOST_VALUE_CHARACTERS and value.isprintable() for value in held.values())
    }


def _flat(metadata: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    for field, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int) and not isinstance(one, bool):
                yield field, str(one)
