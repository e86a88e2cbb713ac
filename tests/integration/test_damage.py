"""Bytes of the stores change on disk: nothing changed is answered, and it is told which file it was."""

import asyncio
import random
import shutil
from pathlib import Path

import httpx
import lancedb
import pytest

from indexer.embedding.encoder import HashingEncoder
from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_comparison import compare_generations
from indexer.generation_folders import CURRENT, CURRENT_COPY, Generation
from indexer.graph.snapshots import newest_intact_snapshot, published_snapshots
from indexer.integrity.files import CHECKSUMS, ChecksumRecorder, read_checksums
from indexer.integrity.noted_damage import note_damage, read_damage
from indexer.read.arrow_folders import MANIFEST
from indexer.read.known_vectors import EarlierVectors
from indexer.read.lance_reader import LanceReader
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, POSITIONS, RETRIEVALS
from indexer.store_verification import verify_when_complete
from indexer.write.lance_writer import LanceWriter
from query_api.app import create_app
from query_api.index import store_opening as integrity_check
from query_api.index.generation import OpenedGeneration
from query_api.index.store_opening import Stores
from query_api.index.text.text_snapshot import TextReader
from query_api.settings import ServiceSettings
from streams.runtime import maintenance
from tests.support.oracles.corruption import (
    Experiment,
    Tally,
    is_live,
    kinds_of,
    make_stores,
    text_answers,
    written_document,
)
from tests.support.waiting import eventually

SEED = 14
HARMLESS = "lance hint"  # Lance takes a wrong one for none
REWRITTEN = "lance checksums"  # of files that are no longer listed, rows are checked; the worker lists them again
KINDS = (
    *("lance data", "lance deletions", "lance indices", "lance versions", "lance transactions", "lance checksums"),
    *("lance hint", "snapshots", "snapshot manifests", "manifest"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data_dir = tmp_path_factory.mktemp("made") / "data"
    make_stores(data_dir, 8)
    return data_dir


@pytest.fixture
def generation(made: Path, tmp_path: Path) -> Generation:
    shutil.copytree(made, tmp_path / "data")
    return Generation(tmp_path / "data", "g0001")


@pytest.mark.parametrize("kind", KINDS)
def test_changed_byte_is_reported_and_never_answered(generation: Generation, kind: str) -> None:
    chosen, tally = random.Random(SEED), Tally()
    experiment = Experiment(generation)
    files = [file for file in kinds_of(generation)[kind] if is_live(file)] or kinds_of(generation)[kind]
    for file in chosen.sample(files, min(2, len(files))):
        experiment.on(kind, file, 2, chosen, tally)
    assert tally.changes
    assert tally.wrong == []
    if kind != HARMLESS:
        assert tally.all_told


@pytest.mark.parametrize("kind", KINDS)
def test_cut_or_zeroed_file_is_reported_and_never_answered(generation: Generation, kind: str) -> None:
    chosen, tally = random.Random(SEED), Tally()
    files = [file for file in kinds_of(generation)[kind] if is_live(file)] or kinds_of(generation)[kind]
    Experiment(generation).spoil(kind, chosen.choice(files), tally)
    assert tally.changes
    assert tally.wrong == []
    if kind not in (HARMLESS, REWRITTEN):
        assert tally.all_told


@pytest.mark.parametrize("name", [b"sealed", b"checksum", b"graph_position", b"positions"])
def test_a_manifest_whose_field_has_lost_its_name_is_damage(generation: Generation, name: bytes) -> None:
    newest = published_snapshots(generation.snapshots_dir)[0]
    manifest = generation.snapshots_dir / newest.name / MANIFEST
    manifest.write_bytes(manifest.read_bytes().replace(name, name[:-1] + b"_"))
    assert verify_when_complete(generation.data_dir, 0).damage == [
        f"snapshots/{newest.name}/{MANIFEST} cannot be read as a manifest"
    ]


@pytest.mark.parametrize("recorded", [True, False], ids=["with checksums", "without"])
@pytest.mark.parametrize("table", [CHUNKS, PASSAGES, DOCUMENTS, POSITIONS])
def test_a_table_that_is_gone_is_damage_and_not_empty(generation: Generation, table: str, recorded: bool) -> None:
    if not recorded:
        (generation.lance_dir / CHECKSUMS).unlink()
    shutil.rmtree(generation.lance_dir / f"{table}.lance")
    with pytest.raises(DamagedStore, match=rf"lance/{table}\.lance is gone(?s:.*)thalweg generations list"):
        TextReader.open(generation)
    with pytest.raises(DamagedStore, match=rf"lance/{table}\.lance is gone"):
        LanceWriter.open(generation, HashingEncoder.dimension)
    assert not (generation.lance_dir / f"{table}.lance").exists()
    report = verify_when_complete(generation.data_dir, 0)
    assert (report.ok, report.damage) == (False, [f"lance/{table}.lance is gone"])


@pytest.mark.parametrize("how", ["gone", "zeroed", "without its newest version"])
def test_damaged_retrievals_are_read_again_from_their_topic(generation: Generation, how: str) -> None:
    folder = generation.lance_dir / f"{RETRIEVALS}.lance"
    if how == "gone":
        shutil.rmtree(folder)
    elif how == "zeroed":
        spoil(next((folder / "data").iterdir()))
    else:
        min((folder / "_versions").glob("*.manifest")).unlink()
    LanceWriter.open(generation, HashingEncoder.dimension).close()
    tables = lancedb.connect(generation.lance_dir)
    assert [tables.open_table(name).count_rows() for name in (RETRIEVALS, DOCUMENTS)] == [0, 8]
    assert generation.reread_path.exists()
    assert verify_when_complete(generation.data_dir, 0).damage == []


TABLE_MANIFESTS_SPOILT = [
    pytest.param(table, how, id=f"{table} {how}")
    for table in (CHUNKS, PASSAGES, DOCUMENTS, POSITIONS)
    for how in ("zeroed", "gone")
]


@pytest.mark.parametrize(("table", "how"), TABLE_MANIFESTS_SPOILT)
def test_table_without_an_intact_version_is_never_read_as_empty(generation: Generation, table: str, how: str) -> None:
    reader = LanceReader.open(generation)
    spoil_versions(generation, table, how)
    with pytest.raises((DamagedStore, TransientStoreError)):
        reader.snapshot()
    with pytest.raises(DamagedStore):
        LanceWriter.open(generation, HashingEncoder.dimension)


@pytest.mark.parametrize(("table", "how"), TABLE_MANIFESTS_SPOILT)
def test_build_beside_a_table_without_intact_versions_goes_on(generation: Generation, table: str, how: str) -> None:
    rows, _ = written_document(1, 5_000)
    spoil_versions(generation, table, how)
    found = EarlierVectors(generation, lambda _: {}, with_entities=True).known_vectors(rows.hashes)
    assert found.keys() == (set() if table == CHUNKS else set(rows.hashes))
    if table in (DOCUMENTS, POSITIONS) or how == "zeroed":
        with pytest.raises((DamagedStore, TransientStoreError, ValueError)):
            compare_generations(generation, generation)


def spoil_versions(generation: Generation, table: str, how: str) -> None:
    for file in (generation.lance_dir / f"{table}.lance" / "_versions").iterdir():
        if how == "zeroed":
            spoil(file)
        else:
            file.unlink()


@pytest.fixture
def quick_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "CHECK_SECONDS", 0.05)


@pytest.mark.usefixtures("quick_checks")
async def test_running_worker_writes_manifest_and_current_again(generation: Generation) -> None:
    files = [generation.manifest_path, generation.manifest_copy_path]
    files += [generation.data_dir / name for name in (CURRENT, CURRENT_COPY)]
    intact = [file.read_bytes() for file in files]
    checking = asyncio.create_task(maintenance.check_files(generation, is_live=True))
    for damaged in ([0], [1], [0, 1], [2], [3], [2, 3], [0, 1, 2, 3]):
        for how in (spoil, Path.unlink, lambda file: file.write_bytes(b"{")):
            await asyncio.sleep(0)
            for number in damaged:
                how(files[number])
            await eventually(lambda: [file.exists() and file.read_bytes() for file in files] == intact)
    checking.cancel()


LOST = {
    "generation": lambda generation: generation.root,
    "tables": lambda generation: generation.lance_dir,
    "documents": lambda generation: generation.lance_dir / "documents.lance",
    "versions": lambda generation: generation.lance_dir / "chunks.lance" / "_versions",
}


@pytest.mark.usefixtures("quick_checks")
@pytest.mark.parametrize("folder", LOST)
async def test_running_worker_finds_a_folder_that_is_gone(generation: Generation, folder: str) -> None:
    checking = asyncio.create_task(maintenance.check_files(generation, is_live=True))
    await asyncio.sleep(0)
    shutil.rmtree(LOST[folder](generation))
    async with asyncio.timeout(20):
        with pytest.raises(DamagedStore, match="is gone"):
            await checking
    noted = note_damage(generation, "It is gone.")
    assert read_damage(generation) == noted


@pytest.mark.parametrize("how", ["gone", "cut", "zeroed"])
def test_list_of_checksums_lost_while_stopped_has_rows_checked(generation: Generation, how: str) -> None:
    recorded = generation.lance_dir / CHECKSUMS
    content = recorded.read_bytes()
    if how == "gone":
        recorded.unlink()
    else:
        recorded.write_bytes(bytes(len(content)) if how == "zeroed" else content[: len(content) // 2])
    LanceWriter.open(generation, HashingEncoder.dimension).close()
    assert len(read_checksums(generation.lance_dir).by_path) >= content.count(b"\n")
    lancedb.connect(generation.lance_dir).open_table(CHUNKS).update(where="true", values={"text": "another"})
    recorded.unlink()
    with pytest.raises(DamagedStore, match="does not match its checksum"):
        LanceWriter.open(generation, HashingEncoder.dimension)


def test_list_of_checksums_lost_while_running_is_written_again(generation: Generation) -> None:
    writer = LanceWriter.open(generation, HashingEncoder.dimension)
    recorded = generation.lance_dir / CHECKSUMS
    before = read_checksums(generation.lance_dir)
    for how in (spoil, Path.unlink, lambda file: file.write_bytes(b"")):
        how(recorded)
        writer.record_checksums()
        assert read_checksums(generation.lance_dir) == before
    writer.close()


def test_a_damaged_index_is_made_again_from_its_table(generation: Generation) -> None:
    before = text_answers(TextReader.open(generation).snapshot())
    for file in (generation.lance_dir / f"{CHUNKS}.lance" / "_indices").rglob("*.lance"):
        spoil(file)
    with pytest.raises(DamagedStore, match=r"_indices(?s:.*)nothing is to be done"):
        TextReader.open(generation)
    LanceWriter.open(generation, HashingEncoder.dimension).close()
    assert len(lancedb.connect(generation.lance_dir).open_table(CHUNKS).list_indices()) == 5
    assert text_answers(TextReader.open(generation).snapshot()) == before
    assert verify_when_complete(generation.data_dir, 0).damage == []


def test_broken_checksum_line_is_dropped_where_rows_are_intact(generation: Generation) -> None:
    recorded = generation.lance_dir / CHECKSUMS
    recorded.write_bytes(recorded.read_bytes().replace(b".lance/data/", b".lance/dat_/", 1))
    assert verify_when_complete(generation.data_dir, 0).damage == [
        "lance/checksums has 1 lines that are not as written"
    ]
    LanceWriter.open(generation, HashingEncoder.dimension).close()
    assert verify_when_complete(generation.data_dir, 0).damage == []


def spoil(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def test_missing_newest_version_is_damage_not_the_state_before(generation: Generation) -> None:
    newest = min((generation.lance_dir / "documents.lance" / "_versions").glob("*.manifest"))
    newest.unlink()
    with pytest.raises(DamagedStore, match="the newest version of its table"):
        TextReader.open(generation)


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (CHUNKS, {"text": "a river that never was"}),
        (CHUNKS, {"passage_id": "another"}),
        (PASSAGES, {"title": "Another"}),
        (DOCUMENTS, {"title": "Another"}),
        (RETRIEVALS, {"body": b"{}"}),
    ],
)
def test_row_changed_before_recording_is_found_by_its_checksum(
    generation: Generation, table: str, values: dict[str, object]
) -> None:
    lancedb.connect(generation.lance_dir).open_table(table).update(where="true", values=values)
    ChecksumRecorder(generation.lance_dir).record()
    report = verify_when_complete(generation.data_dir, 0)
    assert not report.ok
    assert "does not match its" in report.damage[0]
    assert "thalweg verify --repair --store text" in report.advice
    with pytest.raises(DamagedStore, match="does not match its"):
        text_answers(TextReader.open(generation).snapshot())


def test_a_damaged_vector_is_not_used_again(generation: Generation) -> None:
    rows, _ = written_document(1, 5_000)
    writer = LanceWriter.open(generation, HashingEncoder.dimension)
    table = lancedb.connect(generation.lance_dir).open_table(CHUNKS)
    table.update(where="true", values={"vector": [0.5] * HashingEncoder.dimension})
    with pytest.raises(DamagedStore, match="vector_checksum"):
        writer.known_vectors(rows.hashes)
    writer.close()


def test_damaged_newest_snapshot_is_replaced_by_the_one_before(generation: Generation) -> None:
    stores = Stores(10**9, "documents")
    newest, before, *_ = published_snapshots(generation.snapshots_dir)
    file = generation.snapshots_dir / newest.name / "mentions.arrow"
    file.write_bytes(_flipped(file.read_bytes(), 900))
    opened = OpenedGeneration(generation, stores)
    assert (opened.graph_file and opened.graph_file.name) == before.name
    assert opened.graph.base_position == before.graph_position
    (generation.snapshots_dir / newest.name / MANIFEST).write_bytes(b"\x00\xff")
    assert newest_intact_snapshot(generation.snapshots_dir) == before
    for snapshot in published_snapshots(generation.snapshots_dir):
        (generation.snapshots_dir / snapshot.name / "chunks.arrow").write_bytes(b"")
    assert OpenedGeneration(generation, stores).graph.base_position == -1
    report = verify_when_complete(generation.data_dir, 0)
    assert not report.ok
    assert "the worker replaces it" in report.advice


@pytest.fixture
def quick_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrity_check.IntegrityMonitor.__init__, "__kwdefaults__", {"pause_seconds": 0.05})


@pytest.mark.usefixtures("quick_watch")
async def test_service_names_a_damaged_file_and_the_next_one_refuses(generation: Generation) -> None:
    settings = ServiceSettings.model_validate(
        {"storage": {"data_dir": generation.data_dir}, "embedding": {"provider": "hashing"}}
    )
    question = {"q": "river banks", "mode": "keyword"}
    file = max((generation.lance_dir / "chunks.lance" / "data").iterdir(), key=lambda each: each.stat().st_size)
    named = str(file.relative_to(generation.root))
    app = create_app(settings)
    async with app.router.lifespan_context(app), _client(app) as http:
        await eventually(lambda: app.state.service.snapshots.current, seconds=60)
        before = (await http.get("/v1/search", params=question)).json()["hits"]
        file.write_bytes(_flipped(file.read_bytes(), 100))
        await eventually(lambda: app.state.service.snapshots.damage.damage, seconds=60)
        status = (await http.get("/v1/status")).json()
        assert status["damage"] == [f"{named} does not match its checksum"]
        assert any(named in note and "thalweg up" in note for note in status["readiness"]["notes"])
        assert before
        assert (await http.get("/v1/search", params=question)).json()["hits"] == before
    app = create_app(settings)
    async with app.router.lifespan_context(app), _client(app) as http:
        await eventually(lambda: "Damaged" in (app.state.service.snapshots.problem or ""), seconds=60)
        answer = await http.get("/readyz")
        assert answer.status_code == 503
        assert named in answer.json()["reasons"][0]
        assert (await http.get("/v1/search", params=question)).status_code == 503


def _client(app: object) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420")


def _flipped(content: bytes, offset: int) -> bytes:
    return content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :]
