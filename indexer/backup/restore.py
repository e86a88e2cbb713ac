"""A data directory made from a backup: its generation is a new one, which continues where the backup was made.

It gets a name, and so a consumer group and a contributions topic, of its own: the generation that was backed up may go
on beside it, on the same log. Its contributions topic is empty, so its graph snapshot is before the first offset there;
what the tables have beyond that snapshot its worker makes again from the log.
"""

import shutil
from pathlib import Path

import msgspec

from indexer.backup.archive import Advance, Backup, copy_files, full_disk_explained, require_room
from indexer.errors import TransientStoreError
from indexer.generation_folders import (
    Generation,
    LogIdentity,
    new_generation_name,
    read_manifest,
    switch_to,
    write_manifest,
)
from indexer.write.another_topic import begin_another_topic
from schemas.errors import Failure, WrongSetting
from schemas.runtime import is_of_processes

UNPACKED = ".restore"


def restore_backup(backup: Backup, data_dir: Path, advance: Advance) -> Generation:
    """May be cut off anywhere: the directory then has no stores, and it can be done again.

    1. unpack and check every file; 2. make it a generation of its own; 3. give it its place; 4. make it the live one.
    Raises WrongSetting where the directory is not empty, Failure for a full disk, DamagedStore.
    """
    require_empty(data_dir)
    unpacked = data_dir / UNPACKED
    shutil.rmtree(unpacked, ignore_errors=True)
    require_room(data_dir, backup.manifest.bytes, f"What {backup.source} holds")
    restored = Generation(unpacked, new_generation_name(data_dir))
    try:
        with full_disk_explained(data_dir):
            unpacked.mkdir()
            copy_files(backup, unpacked, advance)  # 1
            Generation(unpacked, backup.manifest.generation).root.rename(restored.root)
            _make_its_own(restored, backup)  # 2
            (unpacked / "generations").rename(data_dir / "generations")  # 3
            generation = Generation(data_dir, restored.name)
            switch_to(generation)  # 4
    except TransientStoreError as error:
        raise Failure(f"{error} Nothing was restored; try again.") from error
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return generation


def require_empty(data_dir: Path) -> None:
    """Raises WrongSetting where there is anything but what a restore left that was cut off, and what a service left
    that waits there for stores."""
    if data_dir.exists() and not data_dir.is_dir():
        raise WrongSetting(f"{data_dir} is a file: choose another with --data-dir.")
    if data_dir.is_dir() and any(
        path.name != UNPACKED and not is_of_processes(path.name) for path in data_dir.iterdir()
    ):
        raise WrongSetting(
            f"{data_dir} is not empty: a backup is restored into a new directory. Choose another with --data-dir, or "
            "move this one away."
        )


def _make_its_own(restored: Generation, backup: Backup) -> None:
    restored.lance_dir.mkdir(parents=True, exist_ok=True)
    manifest, log = read_manifest(restored), backup.manifest.log
    own_log = None if log is None else LogIdentity(log.documents, "")
    write_manifest(restored, msgspec.structs.replace(manifest, generation=restored.name, log=own_log))
    begin_another_topic(restored)
