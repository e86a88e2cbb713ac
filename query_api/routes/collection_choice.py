"""Which collection a request means: one rule for all routes.

A list reads all collections. What is named is looked for in all of them, and is to be in one only. What is made goes
into the only collection there is, the first one of all into DEFAULT_COLLECTION. A request that names a collection means
that one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from query_api.errors import ApiProblem
from query_api.index.curation_follower import Curation
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.filter_evaluation import DocumentIndex
from schemas.api import name_collections
from schemas.ids import DEFAULT_COLLECTION, DocumentKey

T = TypeVar("T")


def collections_of(snapshot: Snapshot, curation: Curation | None = None) -> list[str]:
    """Those with live documents, and those of which people said something; ascending. `curation` may be newer than the
    snapshot's."""
    said = curation or snapshot.curation
    with_documents = snapshot.text.fields.derived(DocumentIndex.collections)
    return sorted({*with_documents, *said.by_collection, *said.allowed})


def searched(collection: str | None, snapshot: Snapshot, curation: Curation | None = None) -> list[str]:
    """Where to look: in the collection that is named, else in all."""
    return collections_of(snapshot, curation) if collection is None else [collection]


def only(found: Mapping[T, str], what: str) -> T | None:
    """The one thing of those found, {thing: its collection}; None where there is none. Raises ApiProblem 422 with the
    collections to choose from where there are several; `what` they are begins the sentence."""
    if len(found) > 1:
        collections = sorted(set(found.values()))
        raise choose(f"{what} is in {len(collections)} collections", collections)
    return next(iter(found), None)


def only_collection(holding: Iterable[str], what: str) -> str | None:
    """The only collection of those that hold something: see `only`."""
    return only({each: each for each in holding}, what)


def needed(collection: str | None, snapshot: Snapshot, curation: Curation | None, why: str) -> str:
    """The collection where one is needed, as for what is made: the only one there is. Raises ApiProblem 422 with those
    to choose from; `why` says what needs one."""
    there = searched(collection, snapshot, curation)
    if len(there) > 1:
        raise choose(f"There are {len(there)} collections, and {why}", there)
    return there[0] if there else DEFAULT_COLLECTION


def holding_document(snapshot: Snapshot, collection: str | None, document_id: str) -> list[str]:
    """The collections of those to be searched that hold a live document of this id."""
    keys = [DocumentKey(each, document_id) for each in searched(collection, snapshot)]
    return [key.collection for key in snapshot.text.revisions(keys)]


def where(collections: Sequence[str]) -> str:
    """Where was looked, as the end of a sentence."""
    match collections:
        case []:
            return "in any collection"
        case [one]:
            return f"in the collection {one[:128]!r}"
        case _:
            return f"in any of the {len(collections)} collections ({name_collections(collections)})"


def choose(sentence: str, collections: Sequence[str]) -> ApiProblem:
    """The refusal of a request that has to name one of these collections; the sentence says why."""
    return ApiProblem(
        422,
        "Several collections",
        f"{sentence}; name one of them as `collection`: {name_collections(collections)}.",
        members={"reason": "several_collections", "collections": list(collections)},
    )
