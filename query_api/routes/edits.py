"""What routes for people's edits share: the state they are checked against, the record they become, pages by id."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

from fastapi import Header, Query

from indexer.extraction.lexicon import STOP_WORDS
from query_api.entities.hand_made import MadeId
from query_api.errors import ApiProblem, invalid_request, log_unavailable
from query_api.index.curation_follower import CollectionEdits, Curation
from query_api.index.manager import covers
from query_api.routes.collections import checked_key, publish
from query_api.service_context import Service
from schemas.curation import encode_choice
from schemas.cursors import read_cursor, write_cursor
from schemas.errors import MalformedToken
from schemas.graph_edits import AnyEdit, EditKind, edit_key
from schemas.ids import DocumentKey, Position, normalise_name, parse_positions

OWN_WRITE_SECONDS = 5.0

AfterEdit = Annotated[
    str | None,
    Query(
        max_length=64,
        description="The `position` of an edit: show at least that.",
        json_schema_extra={"pattern": r"^0:[0-9]{1,18}$"},
    ),
]
WaitSeconds = Annotated[float, Query(ge=0, le=60, description="How long to wait for what is to be shown.")]
Cursor = Annotated[str | None, Query(max_length=8_192, description="The `next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=1_000)]
IfMatch = Annotated[str | None, Header(max_length=1_000, description="Its `ETag` as read; 412 if written since.")]


async def current_curation(service: Service, after: str | None = None, wait_seconds: float | None = None) -> Curation:
    """What people say, at least as new as the position `after`; without `wait_seconds`, as for a write that is checked
    against it, as this service's own last write.

    Raises ApiProblem: 400 for a malformed position, 503 where the topic was never reached, or not so far in time.
    """
    follower = service.snapshots.curation
    wanted = -1
    if wait_seconds is None:
        wanted, wait_seconds = follower.written, OWN_WRITE_SECONDS
    if after is not None:
        try:
            wanted = max(wanted, *parse_positions(after).values())
        except MalformedToken as error:
            raise ApiProblem(400, "Malformed token", str(error)) from error
    if not await follower.wait_until_reached():
        raise log_unavailable(f"The curation topic was not read yet: {follower.problem or 'it is being read'}.")
    if not await follower.wait_for(wanted, wait_seconds):
        raise ApiProblem(
            503,
            "Not yet indexed",
            f"After {wait_seconds:g} s the service has not read position 0:{wanted} of the curation topic; it has read "
            f"up to 0:{follower.reached}.",
            retry_after_seconds=1,
            members={"reached": str(Position(0, max(0, follower.reached)))},
        )
    return follower.state


async def write(service: Service, collection: str, kind: EditKind, identifier: str, edit: AnyEdit | None) -> str:
    """The position of the record that says so. Raises ApiProblem."""
    key = checked_key(edit_key, collection, kind, identifier)
    return await publish(service, key, None if edit is None else encode_choice(edit))


def etag(position: str) -> str:
    """Of what a record says: its position, quoted."""
    return f'"{position}"'


async def require_unchanged(service: Service, key: DocumentKey, if_match: str | None) -> None:
    """Raises ApiProblem 412 where its newest record is of none of these ETags, or deletes it. What this service wrote
    is newer than what its snapshot shows; what others write at the same time is not seen before it is indexed."""
    if if_match is None:
        return
    snapshot, newest = service.snapshot(), service.own_writes.newest(key)
    if covers(snapshot, newest):
        rows = await service.read(lambda: snapshot.text.documents([key]))
        newest = {row.partition: row.offset for row in rows.values() if row.live}
    known = {etag(str(Position(*each))) for each in newest.items()} | ({"*"} if newest else set())
    if known.isdisjoint(each.strip() for each in if_match.split(",")):
        raise ApiProblem(
            412,
            "Changed meanwhile",
            f"{key.document_id[:140]!r} has another ETag than {if_match[:80]} by now: somebody changed or deleted it. "
            "Read it again, and send your change with the ETag that it then has.",
        )


class Page(NamedTuple):
    """The ids of a page, the cursor of the next, and how many ids all pages have."""

    ids: list[MadeId]
    next_cursor: str | None
    total: int


def edits_of(curation: Curation, collection: str | None) -> Mapping[str, CollectionEdits]:
    """What people say, by collection: in the one that is named, else in all."""
    return curation.by_collection if collection is None else {collection: curation.of(collection)}


def page_of(ids: Iterable[MadeId], cursor: str | None, limit: int) -> Page:
    """The ids after the cursor's, ascending. Raises MalformedCursor."""
    after = MadeId("", "") if cursor is None else read_cursor(cursor, MadeId, "this list")
    found = sorted(ids)
    following = found[bisect_right(found, after) :]
    more = len(following) > limit
    return Page(following[:limit], write_cursor(following[limit - 1]) if more else None, len(found))


def note_about(*names: str) -> str | None:
    """What to know about a thing of these names, which are all there are."""
    if any(word not in STOP_WORDS for name in names for word in normalise_name(name).split()):
        return None
    return f"{names[0][:80]!r} is a common word, which questions do not ask about: give it a longer name as well."


def check_id(identifier: str, kind: EditKind, *, fits: bool) -> None:
    """Raises ApiProblem 422."""
    if not fits:
        raise invalid_request(
            f"{identifier[:80]!r} is not an id of a hand-made {kind}: it has 1 to 128 letters, digits and `._:@-`, "
            "begins with a letter or digit, and is not 32 hex digits.",
            "bad_key",
        )
