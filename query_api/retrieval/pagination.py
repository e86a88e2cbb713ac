"""Pages by cursor: what a cursor asks for, whether it still can be had, and the cursor of the page after."""

from typing import TYPE_CHECKING

from indexer.errors import MalformedCursor
from query_api.errors import ApiProblem
from query_api.retrieval.cache_key import question_of
from query_api.retrieval.cursors import Cursor, read_cursor, write_cursor
from query_api.retrieval.pinned_snapshots import PinnedSnapshots
from schemas.search import MAX_OFFSET, SearchRequest

if TYPE_CHECKING:
    from query_api.index.snapshot import Snapshot


def page_of(request: SearchRequest) -> SearchRequest:
    """The request with its cursor's offset in place of the cursor. Raises MalformedCursor."""
    if request.cursor is None:
        return request
    return request.model_copy(update={"cursor": None, "offset": read_cursor(request.cursor).offset})


def snapshot_of_page(request: SearchRequest, cursor: str, kept: PinnedSnapshots, generation: str) -> "Snapshot":
    """The snapshot that a cursor's page is read from. Raises ApiProblem: 400 for a cursor that does not fit, 410 for
    one whose snapshot is gone, also with the generation it was of."""
    if request.offset:
        raise ApiProblem(422, "Request does not fit", "Give `cursor` or `offset`, not both: a cursor holds its offset.")
    try:
        asked = read_cursor(cursor)
    except MalformedCursor as error:
        raise ApiProblem(400, "Malformed cursor", str(error)) from error
    if asked.question != question_of(request):
        raise ApiProblem(
            400,
            "Another question",
            "This cursor belongs to another question: send it with the `q`, `collection`, `mode`, `group` and the "
            "other parameters of the first page; only `k` may change.",
        )
    snapshot = kept.find(asked.snapshot)
    if snapshot is None or snapshot.generation != generation:
        raise snapshot_gone()
    return snapshot


def snapshot_gone() -> ApiProblem:
    return ApiProblem(
        410,
        "Snapshot gone",
        "The snapshot of this cursor is no longer kept: search again without it and begin at the first page. "
        "THALWEG_SERVICE__CURSOR_SECONDS and THALWEG_SERVICE__CURSOR_SNAPSHOTS say how long and how many are kept, but "
        "for what is read from disk a shorter time while documents keep changing.",
    )


def reads_tables(request: SearchRequest, snapshot: "Snapshot") -> bool:
    """Whether a page needs the versions of the tables that its snapshot is pinned to."""
    return not snapshot.in_memory or request.context != "parent" or request.duplicates == "semantic"


def next_cursor(
    request: SearchRequest, snapshot: "Snapshot", next_offset: int | None, kept: PinnedSnapshots
) -> str | None:
    """The cursor of the page after the one that `request` asked for; None on the last one that can be had."""
    if next_offset is None or next_offset > MAX_OFFSET:
        return None
    name = kept.keep(snapshot, was_current=request.cursor is None)
    return None if name is None else write_cursor(Cursor(name, question_of(request), next_offset))
