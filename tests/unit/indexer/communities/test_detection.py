"""Communities of a collection: members, ids that stay, parents, summaries that are kept."""

from typing import Any

import numpy as np
import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.communities.detection import find_communities
from indexer.document_pipeline import prepare
from indexer.graph.contributions import tables_of
from indexer.graph.tables import GraphTables
from indexer.linking import contribution
from indexer.read.community_reader import COMMUNITY_TABLES, CommunityTables
from schemas.events import DocumentUpsert
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.fakes.text_stores import Page
from tests.support.fixtures.communities import ENGINES, RIVERS, communities_of, two_themes


def by_members(tables: CommunityTables) -> dict[frozenset[str], dict[str, Any]]:
    """{labels of members: the community}, of the medium level."""
    rows = tables.communities.to_pylist()
    members: dict[int, set[str]] = {}
    for member in tables.members.to_pylist():
        members.setdefault(member["community"], set()).add(member["label"])
    return {frozenset(members[at]): row for at, row in enumerate(rows) if row["level"] == "medium"}


def test_each_theme_is_a_community_with_title_and_summary() -> None:
    found = by_members(communities_of(two_themes()))
    assert set(found) == {frozenset(RIVERS), frozenset(ENGINES)}
    rivers = found[frozenset(RIVERS)]
    assert rivers["title"].split(", ")[0] == "Elbe"
    assert len(rivers["summary"]) >= 3
    texts = {text for page in two_themes() for _, _, text in page.chunks()}
    assert all(sentence["text"] in texts for sentence in rivers["summary"])
    assert all(sentence["document_id"].startswith("rivers/") for sentence in rivers["summary"])


def test_the_tables_have_the_published_columns() -> None:
    for tables in (communities_of(two_themes()), find_communities(GraphTables.empty(), lambda ids: {})):
        assert {name: tables.table(name).schema for name in COMMUNITY_TABLES} == COMMUNITY_TABLES


def test_parents_are_coarser_communities_of_the_collection() -> None:
    rows = communities_of([*two_themes("a"), *two_themes("b")]).communities.to_pylist()
    coarser = {"fine": "medium", "medium": "coarse"}
    assert {row["collection"] for row in rows} == {"a", "b"}
    for row in rows:
        parent = rows[row["parent"]] if row["parent"] >= 0 else None
        assert (parent is None) == (row["level"] == "coarse")
        if parent is not None:
            assert (parent["level"], parent["collection"]) == (coarser[row["level"]], row["collection"])


def test_ids_stay_while_most_members_do() -> None:
    before = communities_of(two_themes())
    newcomer = Page("rivers/9", "Saale", [["The Elbe takes up the Saale at Barby."]], ["Elbe", "Saale"], collection="a")
    saale = Page(
        "rivers/10", "Unstrut", [["The Saale takes up the Elbe, some say."]], ["Elbe", "Saale"], collection="a"
    )
    after = by_members(communities_of([*two_themes(), newcomer, saale], before))
    old = by_members(before)
    ids = {"Elbe" in members: row["id"] for members, row in after.items() if {"Elbe", "Otto"} & members}
    assert ids == {True: old[frozenset(RIVERS)]["id"], False: old[frozenset(ENGINES)]["id"]}
    assert any("Saale" in members for members in after)


def test_found_again_without_the_former_ones_they_are_the_same() -> None:
    """Deleted or damaged files come back with the same ids, where nothing changed meanwhile."""
    once, again = communities_of(two_themes()), communities_of(two_themes()[::-1])
    assert {row["id"] for row in once.communities.to_pylist()} == {row["id"] for row in again.communities.to_pylist()}


def test_only_changed_summaries_are_made_again() -> None:
    before = communities_of(two_themes())
    asked: list[str] = []
    pages = [page for page in two_themes() if page.id != "rivers/2"]
    texts = {identifier: text for page in pages for identifier, _, text in page.chunks()}

    def read(ids: Any) -> dict[str, str]:
        asked.extend(ids)
        return {identifier: texts[identifier] for identifier in ids}

    find_communities(tables_of(page.contribution() for page in pages), read, before)
    engines = {identifier for page in pages if page.id.startswith("engines") for identifier, _, _ in page.chunks()}
    assert asked
    assert not engines & set(asked)


def test_a_collection_that_is_gone_leaves_nothing() -> None:
    both = communities_of([*two_themes("a"), *two_themes("b")])
    after = communities_of(two_themes("b"), both)
    assert list(after.collections) == ["b"]
    assert set(after.communities["collection"].to_pylist()) == {"b"}


def with_header(number: int, subject: str, author: str) -> Contribution:
    """A document whose front matter says who wrote it and when, of what kind it is, and which one it needs."""
    header = f"author: {author}\ntype: Standards Track\nstatus: Accepted\ncreated: 2024-05-0{number + 1}\n"
    text = f"# The {subject}\n\nThe {subject} requires a tidal turbine. A tidal turbine drives the {subject}.\n"
    upsert = DocumentUpsert(
        key=DocumentKey("notes", f"{number}.md"),
        content=f"---\n{header}---\n{text}".encode(),
        content_type="text/markdown",
    )
    prepared = prepare(upsert, ChunkingParameters())
    return contribution(prepared, np.zeros((len(prepared.chunked.chunks), 1), dtype=np.float32))


@pytest.mark.parametrize("level", ["coarse", "medium", "fine"])
def test_titles_name_no_values_of_a_header(level: str) -> None:
    subjects = ("gear box", "rotor brake", "blade root", "steam boiler")
    authors = ("Ada Moss", "Tom Reed", "Ada Moss", "Tom Reed")
    made = [with_header(at, *each) for at, each in enumerate(zip(subjects, authors, strict=True))]
    rows = find_communities(tables_of(made), lambda ids: {}).communities.to_pylist()
    titles = [row["title"] for row in rows if row["level"] == level]
    assert not [
        title for title in titles if "Moss" in title or "Reed" in title or "Standards" in title or "2024" in title
    ]
    assert any("turbine" in title for title in titles) or level != "coarse"


def test_title_names_people_of_fields_who_have_documents_of_their_own() -> None:
    """A list of staff, in which each names the one to ask."""
    people = ("Ada Moss", "Tom Reed", "Eva Lund")
    made = [with_header(at, person, people[(at + 1) % 3]) for at, person in enumerate(people)]
    titles = find_communities(tables_of(made), lambda ids: {}).communities["title"].to_pylist()
    assert any("Ada Moss" in title for title in titles)
