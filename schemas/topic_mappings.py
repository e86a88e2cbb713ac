"""Records of topics that others write, such as the changes of a database's table, as documents.

A record is a JSON object, alone or behind a schema registry's frame, or as Kafka Connect's JSON converter (`schema`,
`payload`) or Debezium (`before`, `after`, `op`) wrap it:
https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events."""

from typing import Any, NamedTuple

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from schemas.errors import MalformedEvent
from schemas.events import DEFAULT_CONTENT_TYPE, Envelope, without_frame
from schemas.ids import DEFAULT_COLLECTION, MAX_COLLECTION_CHARACTERS, DocumentKey

JSON_TYPE = "application/json"
_NOT_SENT = "__debezium_unavailable_value"  # of a large value that did not change

Row = dict[str, Any]


class TopicMapping(BaseModel):
    """How the records of one topic become documents. A path names a value of the row: `title`, `author.name`,
    `tags.0`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: str = Field(DEFAULT_COLLECTION, min_length=1, max_length=MAX_COLLECTION_CHARACTERS, pattern="^[^/]*$")
    id: str | tuple[str, ...] = "id"
    """Of several paths the values are joined by slashes."""
    content: str | None = None
    """Without a path the whole row is the content, as JSON."""
    content_type: str = DEFAULT_CONTENT_TYPE
    title: str | None = None
    uri: str | None = None
    metadata: dict[str, str] = {}
    """Paths by the names that the values get."""

    def document(self, key: bytes | None, value: bytes | None) -> tuple[DocumentKey, bytes | None] | None:
        """The document's key and envelope, which is None where the row was deleted; None for what is no row. Raises
        MalformedEvent."""
        change = _change(key, value)
        if change is None:
            return None
        document = DocumentKey.checked(self.collection, self._id(change.row))
        return document, None if change.is_deleted else self._envelope(document, change.row)

    def _id(self, row: Row) -> str:
        paths = (self.id,) if isinstance(self.id, str) else self.id
        return "/".join(_named(row, path) for path in paths)

    def _envelope(self, document: DocumentKey, row: Row) -> bytes:
        content, content_type = row if self.content is None else _at(row, self.content), self.content_type
        if isinstance(content, dict | list):
            content, content_type = msgspec.json.encode(content).decode(), JSON_TYPE
        given = {name: _at(row, path) for name, path in self.metadata.items()}
        envelope = Envelope(
            id=document.document_id,
            collection=document.collection,
            title=_text(row, self.title),
            content=None if content is None else str(content),
            content_type=content_type,
            uri=_text(row, self.uri),
            metadata={name: each for name, each in given.items() if each is not None},
        )
        return msgspec.json.encode(envelope)


class _Change(NamedTuple):
    row: Row
    is_deleted: bool = False


def _change(key: bytes | None, value: bytes | None) -> _Change | None:
    """What a record says about a row; None for one about none, such as a message that is logged beside them."""
    if value is None:
        return _Change(_row_of_key(key), is_deleted=True)
    row = _decoded(value)
    if "op" in row and ("after" in row or "before" in row or "source" in row):
        if row["op"] == "t":
            raise MalformedEvent(
                "wrong_type", "The table was truncated, which names no rows: delete the collection, or its documents."
            )
        if row["op"] == "d":
            return _Change(_image(row.get("before")) or _row_of_key(key), is_deleted=True)
        after = _image(row.get("after"))
        return None if after is None else _Change(after)
    return _Change(row, is_deleted=str(row.get("__deleted")).lower() == "true")


def _image(row: Any) -> Row | None:
    """Of a row before or after a change; of MongoDB's it is JSON in a string."""
    return _decoded(row.encode()) if isinstance(row, str) else row


def _row_of_key(key: bytes | None) -> Row:
    """What the key of a deleted row says: its columns, or its id alone."""
    try:
        return _decoded(key or b"")
    except MalformedEvent:
        text = (key or b"").decode("utf-8", "replace").strip('"')
        return {"id": text} if text else {}


def _decoded(value: bytes) -> Row:
    try:
        found = msgspec.json.decode(without_frame(value))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedEvent("not_json", f"The record is not JSON: {error}.") from error
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        found = found["payload"]
    if not isinstance(found, dict):
        raise MalformedEvent("wrong_type", "The record is not a JSON object, as a row of a table is.")
    return found


def _at(row: Row, path: str) -> Any:
    """None where there is nothing."""
    if path in row:
        found: Any = row[path]
    else:
        found = row
        for name in path.split("."):
            if isinstance(found, list) and name.isdecimal() and int(name) < len(found):
                found = found[int(name)]
            else:
                found = found.get(name) if isinstance(found, dict) else None
    if found == _NOT_SENT:
        raise MalformedEvent(
            "wrong_type",
            f"Debezium does not send {path!r}, which did not change. Let the table be logged with all of its columns: "
            "ALTER TABLE … REPLICA IDENTITY FULL.",
        )
    return found


def _text(row: Row, path: str | None) -> str | None:
    found = None if path is None else _at(row, path)
    return None if found is None else str(found)


def _named(row: Row, path: str) -> str:
    """A part of the document's id. Raises MalformedEvent."""
    found = _at(row, path)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, str | int | float) or found == "":
        columns = ", ".join(map(repr, list(row)[:20])) or "nothing"
        raise MalformedEvent("missing_id", f"The row has no id at {path!r}: it has {columns}.")
    return str(found)
