"""The models of `/v1/communities`."""

from pydantic import BaseModel, Field

from schemas.answers import Summary
from schemas.choices import CommunityLevel


class CommunitySentence(BaseModel):
    """A sentence of a summary, as written in a chunk."""

    text: str
    chunk_id: str = Field(description="For `/v1/chunks/{id}`.")
    document_id: str


class CommunityName(BaseModel):
    id: str
    level: CommunityLevel
    title: str = Field(description="Names of its most central members.")
    size: int = Field(description="Members.")


class CommunitySummary(CommunityName):
    """Entities that documents relate to each other more than to others. The id stays while most of them do."""

    collection: str
    parent: str | None = Field(None, description="The id of the coarser community that holds most of its members.")
    type: str = Field("", description="The entity type of most members; empty where there is none.")
    summary: list[CommunitySentence] = Field(
        description="What documents state of its members; without sentences of chunks that are gone since."
    )


class CommunityPage(BaseModel):
    communities: list[CommunitySummary]
    next_cursor: str | None = None
    total: int = Field(description="On all pages.")
    graph_position: int = Field(description="The offset on the contributions topic that they were found at.")
    made_at: str = Field(description="RFC 3339 time at which they were found.")


class CommunityMember(BaseModel):
    id: str = Field(description="The entity's id, for `/v1/nodes/{id}`.")
    label: str
    type: str = ""
    strength: float = Field(description="The weight of its edges to other members.")


class CommunityDetail(CommunitySummary):
    parent_community: CommunityName | None = None
    children: list[CommunityName] = Field(description="The finer communities of which it is the parent, largest first.")
    members: list[CommunityMember] = Field(description="The most central first; without entities that are gone since.")
    graph_position: int = Field(description="The offset on the contributions topic that it was found at.")
    written_summary: Summary | None = Field(None, description="With sources, where `summary_form` asks for it.")
