"""`/v1/communities`: communities of entities, their members and summaries."""

from collections.abc import Sequence
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query

from query_api.entities.catalogue import EntityCatalogue
from query_api.errors import ApiProblem, problem_responses
from query_api.index.community_view import CommunityView, Place
from query_api.index.graph.explorer import Explorer
from query_api.index.graph.identifiers import key_of
from query_api.index.search_snapshot import Snapshot
from query_api.routes.graph import explorer_of
from query_api.routes.parameters import AllCollections, ServiceOf
from query_api.routes.summaries import SummariseAsAsked
from query_api.study.summarised import of_community
from schemas.choices import CommunityLevel
from schemas.clock import rfc3339
from schemas.communities import CommunityDetail, CommunityMember, CommunityPage, CommunitySummary
from schemas.cursors import read_cursor, write_cursor

router = APIRouter(tags=["graph"])

RETRY_SECONDS = 10
NONE_YET = (
    "No communities are found yet. The worker finds them after its next snapshot of the graph, in a quiet moment or "
    "about once a minute: is one running?"
)


@router.get("/v1/communities", summary="List communities of entities")
async def list_communities(
    service: ServiceOf,
    collection: AllCollections = None,
    level: Annotated[CommunityLevel | None, Query(description="Only this level; all three when left out.")] = None,
    q: Annotated[
        str | None, Query(max_length=200, description="Only those with these words in the title or in members' names.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=8192, description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> CommunityPage:
    """By collection, from coarse to fine, the largest first."""
    snapshot = service.snapshot()
    view = view_of(snapshot)
    after = None if cursor is None else read_cursor(cursor, Place, "a list of communities")

    def read() -> CommunityPage:
        found = view.page(collection, level, q, after, limit)
        return CommunityPage(
            communities=with_current_sentences(snapshot, found.communities),
            next_cursor=write_cursor(view.place(found.communities[-1].id)) if found.has_more else None,
            total=found.total,
            graph_position=view.graph_position,
            made_at=rfc3339(view.made_at_ms),
        )

    return await service.read(read)


@router.get("/v1/communities/{community_id}", summary="A community of entities", responses=problem_responses(403, 404))
async def get_community(
    community_id: str,
    service: ServiceOf,
    summarise: SummariseAsAsked,
    limit: Annotated[int, Query(ge=1, le=10_000, description="Members, at most.")] = 100,
) -> CommunityDetail:
    """Its summary with sources, its most central members, the coarser and the finer communities beside it."""
    snapshot = service.snapshot()
    view = view_of(snapshot)
    row = view.row(community_id)
    if row is None:
        raise ApiProblem(
            404,
            "No such community",
            f"There is no community {community_id[:80]!r} now: it was merged or has broken up. GET /v1/communities "
            "lists those there are.",
        )
    found = row

    def read() -> CommunityDetail:
        community = with_current_sentences(snapshot, list(view.summaries([found])))[0]
        catalogue = service.catalogues.of(snapshot.graph, snapshot.curation, may_be_older=True)
        explorer = explorer_of(snapshot, catalogue)
        return CommunityDetail(
            **community.model_dump(),
            parent_community=view.parent(found),
            children=view.children(found),
            members=_as_people_see_them(view.members(found), community.collection, catalogue, explorer, limit),
            graph_position=view.graph_position,
        )

    detail = await service.read(read)
    detail.written_summary = await summarise(lambda: of_community(snapshot, detail))
    return detail


def _as_people_see_them(
    members: Sequence[CommunityMember], collection: str, catalogue: EntityCatalogue, explorer: Explorer, limit: int
) -> list[CommunityMember]:
    """The first of those that are there, each node once: by the name and type that documents and people give it now."""
    shown: dict[str, CommunityMember] = {}
    for member in members:
        if len(shown) == limit:
            break
        entity = catalogue.of_key(key_of(member.id))
        place = explorer.find(member.id if entity is None else entity.id, collection)
        if place is not None:
            node = explorer.nodes([place])[place]
            known = {"label": node.label, "type": node.type} if node.type else {}
            shown.setdefault(node.id, member.model_copy(update={"id": node.id, **known}))
    return list(shown.values())


def view_of(snapshot: Snapshot) -> CommunityView:
    """Raises ApiProblem 503 while there are none."""
    if snapshot.communities is None:
        raise ApiProblem(503, "No communities yet", NONE_YET, retry_after_seconds=RETRY_SECONDS)
    return snapshot.communities


Summary = TypeVar("Summary", bound=CommunitySummary)


def with_current_sentences(snapshot: Snapshot, communities: Sequence[Summary]) -> list[Summary]:
    """Without sentences of chunks that were changed or deleted since."""
    cited = {sentence.chunk_id for community in communities for sentence in community.summary}
    there = snapshot.text.chunks(list(cited))
    return [
        community.model_copy(update={"summary": [each for each in community.summary if each.chunk_id in there]})
        for community in communities
    ]
