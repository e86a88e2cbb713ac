"""Damaged tables as the writer finds them when it opens them: what needs no record of a document is repaired then.

An index is dropped, since it is made again from its table. Retrievals and feedback are set aside: their topic holds
them. A line of the list of checksums that is not as written is left out, once every row has been checked.
"""

import shutil
from collections.abc import Iterable

import structlog

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation
from indexer.integrity.files import (
    CHECKSUMS,
    INDEXES,
    SUFFIX,
    ChecksumRecorder,
    Damage,
    damage_message,
    damaged_files,
    is_in_tables,
    is_recoverable,
    missing_tables,
    read_checksums,
    table_of,
)
from indexer.lance_connection import connect, store_errors
from indexer.read.lance_reader import LanceReader
from indexer.schema import DOCUMENTS, FEEDBACK, RETRIEVALS

DAMAGED = "damaged"
OF_PROVENANCE = (RETRIEVALS, FEEDBACK)

log = structlog.get_logger(__name__)


def recover_tables(generation: Generation) -> None:
    """Read every file once, and repair what is damaged. May be interrupted and called again.

    Raises DamagedStore, and changes nothing, where the documents' tables are damaged themselves.
    """
    recorded = read_checksums(generation.lance_dir)
    damage = missing_tables(generation, recorded)
    damage += damaged_files(generation.lance_dir, recorded, recorded.by_path)
    if recorded.is_cut and (generation.lance_dir / f"{DOCUMENTS}{SUFFIX}").exists():
        damage.append(Damage(f"lance/{CHECKSUMS}", "is gone, or cut off"))
    if not all(map(is_recoverable, damage)):
        raise DamagedStore(damage_message(damage))
    if not damage:
        return
    log.warning("damaged on disk, and made again", damage=[str(each) for each in damage])
    if any(is_in_tables(each, OF_PROVENANCE) for each in damage):
        generation.reread_path.touch()
        for table in OF_PROVENANCE:
            _set_aside(generation, table)
    _drop_indexes(generation, [each for each in damage if not is_in_tables(each, OF_PROVENANCE)])
    if any(each.path == f"lance/{CHECKSUMS}" for each in damage):
        LanceReader(connect(generation.lance_dir)).snapshot().require_intact_rows()
    ChecksumRecorder(generation.lance_dir)  # writes the list again


def _set_aside(generation: Generation, table: str) -> None:
    """The last one is kept to be looked at."""
    aside = generation.lance_dir / f".{table}.{DAMAGED}"
    folder = generation.lance_dir / f"{table}{SUFFIX}"
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)


def _drop_indexes(generation: Generation, damage: Iterable[Damage]) -> None:
    """All of a table where one is damaged: their files do not say which one they belong to."""
    paths = [each.path.removeprefix("lance/") for each in damage if f"/{INDEXES}/" in each.path]
    connection = connect(generation.lance_dir)
    for name in sorted({table_of(path) for path in paths}):
        with store_errors(f"drop the indexes of {name}"):
            table = connection.open_table(name)
            for index in table.list_indices():
                table.drop_index(index.name)
    for path in paths:
        (generation.lance_dir / path).unlink(missing_ok=True)
