"""What a labelled collection becomes in the service: envelopes in a collection whose name holds a hash of them.

So a collection of that name can only hold documents of this corpus as it is now: which of them are there is all there
is to know about a load that was done before, finished or not.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from query_api.evaluation.datasets import LabelledCollection, LabelledDocument
from schemas.errors import MalformedEvent, WrongSetting
from schemas.ids import MAX_COLLECTION_CHARACTERS, DocumentKey

CONTENT_TYPE = "text/plain"
HASH_DIGITS = 12

_NOT_IN_A_NAME = re.compile(r"[/\s\x00-\x1f\x7f]+")


class Corpus(msgspec.Struct, frozen=True):
    """`envelopes` is {document id in the service: envelope as JSON}; `unfilled` counts documents without text and
    title, which no search can find and which are not published."""

    collection: str
    envelopes: Mapping[str, bytes]
    unfilled: int


def corpus_of(collections: Sequence[LabelledCollection], pool: str | None = None) -> Corpus:
    """The corpus of one collection, or of several pooled under a name.

    Raises WrongSetting where an id or a name cannot be a document's key, or two pooled folders have the same name.
    """
    if pool is not None and len({each.name for each in collections}) < len(collections):
        raise WrongSetting("Two of the folders have the same name; rename one, so that their documents stay apart.")
    published = {
        served_id(each, document.id, pool): document
        for each in collections
        for document in each.documents
        if not document.is_empty
    }
    state = hashlib.sha256(CONTENT_TYPE.encode())
    for document_id, document in sorted(published.items()):
        state.update(msgspec.json.encode([document_id, *_fields(document).values()], order="deterministic"))
    name = _NOT_IN_A_NAME.sub("-", pool or collections[0].name)[: MAX_COLLECTION_CHARACTERS - HASH_DIGITS - 1]
    collection = f"{name}-{state.hexdigest()[:HASH_DIGITS]}"
    envelopes = {}
    for document_id, document in published.items():
        try:
            DocumentKey.checked(collection, document_id)
        except MalformedEvent as error:
            raise WrongSetting(f"The document {document.id!r} cannot be published: {error}") from error
        envelopes[document_id] = msgspec.json.encode(
            {"id": document_id, "collection": collection, "content_type": CONTENT_TYPE, **_fields(document)}
        )
    unfilled = sum(document.is_empty for each in collections for document in each.documents)
    return Corpus(collection, envelopes, unfilled)


def served_id(collection: LabelledCollection, document_id: str, pool: str | None) -> str:
    """A document's id in the service: its own; in a pool, where two folders may both have a `1`, after its folder's."""
    return document_id if pool is None else f"{collection.name}/{document_id}"


def _fields(document: LabelledDocument) -> dict[str, Any]:
    return {"title": document.title or None, "content": document.text or "", "metadata": document.metadata or {}}
