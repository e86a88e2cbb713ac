"""What on disk is not what was written: tables, snapshots of the graph, and the graph itself while nobody writes it."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from indexer.errors import DamagedStore
from indexer.generations import Generation
from indexer.integrity.damage import Damage, sentence_of
from indexer.integrity.file_checksums import (
    SUFFIX,
    damage_among,
    file_checksum,
    missing_or_broken,
    read_checksums,
    table_of,
)
from indexer.read.graph_snapshots import snapshot_damage
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, POSITIONS, RETRIEVALS

MADE_BEFORE_DOCUMENTS = (CHUNKS, PASSAGES, POSITIONS, RETRIEVALS)
FILES_AT_ONCE = 32
CLOSED = "closed"  # beside the graph while no process has it open: its checksum


def require_intact_tables(generation: Generation, tables: Collection[str] = ()) -> None:
    """Read every file of these tables once, of all for none, at a gigabyte a second or so.

    Raises DamagedStore for what is not what was written, with what mends it.
    """
    recorded = read_checksums(generation.lance_dir)
    damage = missing_or_broken(generation.lance_dir, recorded, _required(generation))
    paths = [path for path in recorded.by_path if not tables or table_of(path) in tables]
    damage += damage_among(generation.lance_dir, recorded, paths)
    if damage:
        raise DamagedStore(sentence_of(generation.data_dir, damage))


def damage_of(generation: Generation) -> Iterator[list[Damage]]:
    """Everything that is not what was written, found step by step: a step reads some 32 files, or one large one."""
    recorded = read_checksums(generation.lance_dir)
    yield missing_or_broken(generation.lance_dir, recorded, _required(generation))
    paths = sorted(recorded.by_path)
    for start in range(0, len(paths), FILES_AT_ONCE):
        yield damage_among(generation.lance_dir, recorded, paths[start : start + FILES_AT_ONCE])
    yield from ([each] for each in snapshot_damage(generation.snapshots_dir))
    yield closed_graph_damage(generation.graph_path)


def closed_graph_damage(graph: Path) -> list[Damage]:
    """Whether the graph is as its worker closed it; nothing is said of one that is open, or was never closed."""
    try:
        sound = file_checksum(graph) == graph.with_name(CLOSED).read_text()
    except FileNotFoundError:
        return []
    except ValueError:
        sound = False
    if not graph.with_name(CLOSED).exists():  # opened meanwhile
        return []
    return [] if sound else [Damage(f"graph/{graph.name}", "does not match its checksum")]


def all_damage(generation: Generation) -> list[Damage]:
    """The same, at once."""
    return [damage for step in damage_of(generation) for damage in step]


def is_in_tables(damage: Damage, tables: Iterable[str]) -> bool:
    """Whether it is in one of these tables."""
    return any(damage.path.startswith(f"lance/{table}{SUFFIX}") for table in tables)


def _required(generation: Generation) -> Collection[str]:
    """The tables that must be there, by the order they are made in: `documents` last, rows only then."""
    lance_dir = generation.lance_dir
    if (lance_dir / f"{DOCUMENTS}{SUFFIX}").exists():
        return MADE_BEFORE_DOCUMENTS
    return (DOCUMENTS,) if any(any(lance_dir.glob(f"{name}{SUFFIX}/data/*")) for name in (CHUNKS, PASSAGES)) else ()
