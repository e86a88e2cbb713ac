"""How far the contributions topic is trimmed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from indexer.generation_folders import Generation
from indexer.graph.snapshots import published_snapshots
from streams.runtime.trimming import Trimmer, first_needed
from tests.support.fixtures.graph_snapshots import write_snapshot
from tests.support.kafka import plaintext


@pytest.mark.parametrize(
    ("positions", "mark", "expected"),
    [((), 9, 0), ((3, 5), 9, 0), ((3, 5, 8), 9, 4), ((3, 5, 8), 2, 3), ((1, 3, 5, 8), 9, 4), ((-1, 5, 8), 9, 0)],
)
def test_third_snapshot_and_tables_keep_what_follows(
    tmp_path: Path, positions: Sequence[int], mark: int, expected: int
) -> None:
    for made_at, position in enumerate(positions):
        write_snapshot(tmp_path, [], position, made_at)
    assert first_needed(published_snapshots(tmp_path), mark) == expected


async def test_trimmer_deletes_once_and_again_after_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generation = Generation(tmp_path, "g0001")
    marks = iter([-1, 9, 9, 9, 9])
    deleted: list[int] = []
    refused = [OSError("no route"), None, None]

    def delete_before(_trimmer: Trimmer, offset: int) -> None:
        deleted.append(offset)
        if (error := refused.pop(0)) is not None:
            raise error

    async def mark() -> int:
        return next(marks)

    monkeypatch.setattr(Trimmer, "_delete_before", delete_before)
    for made_at, position in enumerate((3, 5, 8)):
        write_snapshot(generation.snapshots_dir, [], position, made_at)
    trimmer = Trimmer(plaintext("localhost:1"), "contributions", generation, mark)
    for _ in range(4):
        await trimmer.trim()
    write_snapshot(generation.snapshots_dir, [], 12, 9)
    await trimmer.trim()
    assert deleted == [4, 4, 6]
