"""Which collection a request means: one rule for all routes.

A list reads all collections. What is named is looked for in all of them, and is to be in one only. What is made goes
into the only collection there is, the first one of all into DEFAULT_COLLECTION. A request that names a collection means
that one. A collection of nothing but saved notes, which repeat what others say, is meant only where there is no other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from query_api.errors import ApiProblem
from query_api.index.curation_follower import Curation
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.filter_evaluation import DocumentIndex
from schemas.api import name_collections
from schemas.filters import Condition
from schemas.ids import DEFAULT_COLLECTION, DocumentKey
from schemas.research import NOTE_URI

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


def saved_notes(snapshot: Snapshot, collection: str | None = None) -> frozenset[DocumentKey]:
    """The notes of earlier research, which are no evidence unless their collection is asked for."""
    if collection is not None:
        return frozenset()
    return snapshot.text.fields.scope(None, [Condition("uri", "=", (NOTE_URI,))]).documents or frozenset()


def without_notes(collections: Iterable[str], snapshot: Snapshot) -> list[str]:
    """Without those that hold nothing but saved notes, unless there are no others; ascending."""
    there, notes = sorted(set(collections)), Counter(key.collection for key in saved_notes(snapshot))
    held = snapshot.text.fields.derived(DocumentIndex.collections)
    return [each for each in there if not notes[each] or sum(held[each][:2]) > notes[each]] or there


def only(found: Mapping[T, str], what: str, snapshot: Snapshot) -> T | None:
    """The one thing of those found, {thing: its collection}; None where there is none. Raises ApiProblem 422 with the
    collections to choose from where there are several; `what` they are begins the sentence."""
    if len(found) > 1:
        collections = without_notes(found.values(), snapshot)
        found = {each: of for each, of in found.items() if of in collections}
        if len(found) > 1:
            raise choose(f"{what} is in {len(collections)} collections", collections)
    return next(iter(found), None)


def only_collection(holding: Iterable[str], what: str, snapshot: Snapshot) -> str | None:
    """The only collection of those that hold something: see `only`."""
    return only({each: each for each in holding}, what, snapshot)


def needed(collection: str | None, snapshot: Snapshot, curation: Curation | None, why: str) -> str:
    """The collection where one is needed, as for what is made: the only one there is. Raises ApiProblem 422 with those
    to choose from; `why` says what needs one."""
    there = searched(collection, snapshot, curation)
    if len(there) > 1:
        there = without_notes(there, snapshot)
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
