"""Connections to LanceDB, and what its errors mean.

A store that refuses a call (full disk, I/O error, commit conflict) raises TransientStoreError: retry. Data that cannot
be decoded raises DamagedStore: do not retry.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import lancedb
from lancedb.table import Table

from indexer.errors import DamagedStore, TransientStoreError

MIB = 1024 * 1024
INDEX_CACHE_BYTES = 512 * MIB
METADATA_CACHE_BYTES = 64 * MIB


def connect(lance_dir: Path, *, index_cache_bytes: int = INDEX_CACHE_BYTES) -> lancedb.DBConnection:
    """A connection with bounded caches; its table handles stay at the version that they were opened at."""
    session = lancedb.Session(index_cache_size_bytes=index_cache_bytes, metadata_cache_size_bytes=METADATA_CACHE_BYTES)
    return lancedb.connect(lance_dir, session=session)


def open_fresh_tables(lance_dir: Path, names: Iterable[str]) -> dict[str, Table]:
    """Handles of the tables with empty caches of their own, in some 50 ms.

    Each commit and each `optimize` leaves files and indexes in the caches that are never used again, by which a worker
    grew by 25 MB in 20 minutes; so writers reopen their tables from time to time.
    """
    connection = connect(lance_dir)
    return {name: connection.open_table(name) for name in names}


def open_table(connection: lancedb.DBConnection, name: str) -> Table:
    """The table at its newest version. Raises ValueError where there is none, DamagedStore as `checkout_latest`."""
    table = connection.open_table(name)
    _require_columns(table)
    return table


def checkout_latest(table: Table) -> None:
    """Move a handle to the newest version. Raises DamagedStore for a manifest of zeros."""
    table.checkout_latest()  # type: ignore[no-untyped-call]
    _require_columns(table)


def _require_columns(table: Table) -> None:
    """Lance takes a manifest of zeros for that of an empty table without columns."""
    if not table.schema.names:
        raise DamagedStore.of_table(table.name, ValueError("its newest version has no columns"))


PANICS = {"PanicException", "RustPanic"}  # of Lance's Rust code, in Python's threads and in its own


@contextmanager
def read_errors(table: str) -> Iterator[None]:
    """For a read with valid arguments: raise DamagedStore for what cannot be decoded, else as `store_errors`."""
    try:
        with store_errors(f"read {table}"):
            yield
    except (
        ValueError,
        LookupError,
        OverflowError,
    ) as error:  # such as ArrowInvalid, UnicodeDecodeError, no such column
        raise DamagedStore.of_table(table, error) from error
    except TransientStoreError as error:
        if type(error.__cause__).__name__ not in PANICS:
            raise
        raise DamagedStore.of_table(table, error) from error


@contextmanager
def store_errors(doing: str) -> Iterator[None]:
    """Convert LanceDB's I/O errors, full disks and commit conflicts into TransientStoreError.

    `doing` completes the sentence "Could not …". Bad arguments (ValueError, TypeError) pass through.
    """
    try:
        yield
    except OSError as error:
        raise TransientStoreError(f"Could not {doing}: {error}") from error
    except RuntimeError as error:
        if type(error) is not RuntimeError:  # NotImplementedError, RecursionError: faults of the program
            raise
        raise TransientStoreError(f"Could not {doing}: {error}") from error
    except BaseException as error:
        if type(error).__name__ not in PANICS:
            raise
        raise TransientStoreError(f"Could not {doing}: {error}") from error
