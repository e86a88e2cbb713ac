"""Documents come, change and go; the graph holds what the last of each put into it, and nothing else."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.errors import StoreInUse
from indexer.generations import Generation
from indexer.write import kuzu_compaction
from indexer.write.kuzu import GraphWriter
from tests.support.fixtures.graph import (
    Change,
    digest_after,
    digest_of,
    document,
    story,
    tables_of,
    withdrawn,
)


def test_what_was_copied_into_the_graph_does_not_stay_in_memory(writer: GraphWriter) -> None:
    held = []
    for turn in range(12):
        writer.apply([document(number, turn) for number in range(40)], turn)
        held.append(pa.total_allocated_bytes())
    assert held[-1] <= max(held[:3]), "a connection keeps the tables it was given until it is closed"


def test_everything_a_document_contributes_is_read_back(writer: GraphWriter, generation: Generation) -> None:
    _, contribution = document(7)
    assert contribution is not None
    writer.apply([document(7)], 41)

    graph = tables_of(writer, generation)

    assert writer.position() == 41
    assert graph.documents.to_pylist()[0]["revision"] == contribution.revision
    assert graph.ids("chunks") == [chunk.id for chunk in contribution.chunks]
    mentions = {row["surface"]: row["sentences"] for row in graph.mentions.to_pylist()}
    assert mentions == {mention.surface: mention.sentences for mention in contribution.mentions}
    assert sorted(graph.roles["role"].to_pylist()) == ["date", "object", "subject"]
    assert sorted(graph.chunk_edges["kind"].to_pylist()) == ["next_chunk"] * 3 + ["related_to", "similar_to"]
    assert graph.document_names["document_id"].to_pylist() == ["document 8"]
    assert [row["parent"] for row in graph.sections.sort_by("ordinal").to_pylist()] == [-1, 0]


def test_documents_are_told_with_their_revisions_and_chunks(writer: GraphWriter) -> None:
    changes = [document(number) for number in range(40)]
    writer.apply(changes, 1)
    expected = {key: (made.revision, len(made.chunks)) for key, made in changes if made is not None}
    assert writer.documents([*expected, document(99)[0]]) == expected
    assert writer.documents([]) == {}


def test_the_extractors_of_its_statements_are_told_as_long_as_there_are_statements(writer: GraphWriter) -> None:
    assert writer.extractors() == set()
    key, made = document(7)
    assert made is not None
    stated = {statement.extractor for statement in made.statements}
    assert stated
    writer.apply([(key, made)], 1)
    assert writer.extractors() == stated
    writer.apply([(key, None)], 2)
    assert writer.extractors() == set()


def test_an_empty_graph_reads_as_empty_tables(writer: GraphWriter, generation: Generation) -> None:
    graph = tables_of(writer, generation)

    assert writer.position() == -1
    assert {*graph.counts().values()} == {0}


def test_a_batch_applied_again_changes_nothing(writer: GraphWriter, generation: Generation) -> None:
    batch = [document(number) for number in range(20)]
    writer.apply(batch, 5)
    once = digest_of(writer, generation)

    writer.apply(batch, 5)

    assert digest_of(writer, generation) == once


def test_a_replaced_document_leaves_nothing_behind(writer: GraphWriter, generation: Generation, tmp_path: Path) -> None:
    for position, batch in enumerate(story()):
        writer.apply(batch, position)

    last = {change[0]: change for batch in story() for change in batch}
    assert digest_of(writer, generation) == digest_after(tmp_path / "rebuilt", [list(last.values())])


def test_add_then_delete_is_as_if_it_had_never_been(
    writer: GraphWriter, generation: Generation, tmp_path: Path
) -> None:
    writer.apply([document(1)], 0)
    writer.apply([document(2)], 1)
    writer.apply([withdrawn(2)], 2)

    graph = tables_of(writer, generation)

    assert digest_of(writer, generation) == digest_after(tmp_path / "never", [[document(1)]])
    assert not [name for name in graph.entities["name"].to_pylist() if "document 2" in name]


def test_an_entity_that_lost_its_evidence_comes_back_with_it(
    writer: GraphWriter, generation: Generation, tmp_path: Path
) -> None:
    writer.apply([document(2)], 0)
    writer.apply([withdrawn(2)], 1)
    assert tables_of(writer, generation).entities.num_rows == 0

    writer.apply([document(2)], 2)

    assert digest_of(writer, generation) == digest_after(tmp_path / "fresh", [[document(2)]])


def test_the_order_of_arrival_does_not_show(writer: GraphWriter, generation: Generation, tmp_path: Path) -> None:
    for position, number in enumerate((5, 3, 4, 1, 2)):
        writer.apply([document(number)], position)

    assert digest_of(writer, generation) == digest_after(
        tmp_path / "at once", [[document(number) for number in (1, 2, 3, 4, 5)]]
    )


def test_a_worn_graph_written_anew_is_the_same_graph(
    writer: GraphWriter, generation: Generation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for position in range(4):
        writer.apply([document(number, revision=position) for number in range(40)], position)
    worn = generation.graph_path.stat().st_ino
    before = digest_of(writer, generation)
    assert generation.graph_path.stat().st_ino == worn

    monkeypatch.setattr(kuzu_compaction, "MAX_SWELLING", 0.0)
    after = digest_of(writer, generation)

    assert generation.graph_path.stat().st_ino != worn
    assert after == before
    assert writer.position() == 3
    writer.apply([document(1, revision=9), withdrawn(2)], 4)
    rest = [document(1, revision=9), *(document(number, revision=3) for number in (0, *range(3, 40)))]
    assert digest_of(writer, generation) == digest_after(tmp_path / "rest", [rest])


def test_a_second_writer_is_told_who_is_in_the_way(writer: GraphWriter, generation: Generation) -> None:
    with pytest.raises(StoreInUse, match="Another process"):
        GraphWriter.open(generation)
    assert writer.position() == -1


CHANGES = st.one_of(st.builds(document, st.integers(0, 3), st.integers(0, 2)), st.builds(withdrawn, st.integers(0, 3)))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(CHANGES, min_size=1, max_size=4, unique_by=lambda change: change[0]), max_size=5))
def test_any_history_leaves_what_its_last_state_alone_would(
    batches: list[list[Change]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    last = {change[0]: change for batch in batches for change in batch}
    lived = digest_after(tmp_path_factory.mktemp("lived"), batches)
    assert lived == digest_after(tmp_path_factory.mktemp("rebuilt"), [list(last.values())])
