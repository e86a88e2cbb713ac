"""Records the checksums of the LanceDB files soon after they are written."""

from pathlib import Path

from indexer.generations import replace_file
from indexer.integrity.files import (
    CHECKSUMS,
    SUFFIX,
    VERSIONS,
    checksum_line,
    file_checksum,
    immutable_files,
    read_checksums,
    table_of,
)

MIN_STALE_LINES = 500


class ChecksumRecorder:
    """Maintains the file of checksums in the process that writes the tables. Not thread-safe."""

    def __init__(self, lance_dir: Path) -> None:
        """Trusts the recorded checksums; lines of removed files are dropped."""
        self._lance_dir = lance_dir
        recorded = read_checksums(lance_dir).by_path
        self._by_path = {path: checksum for path, checksum in recorded.items() if (lance_dir / path).exists()}
        self._stale = 0
        self._torn = False
        self._seen: dict[str, int] = {}  # table → modification time of its versions
        self._rewrite()

    def record(self) -> int:
        """Record the files added since the last call; returns their number.

        Reads the new files, and lists the tables with new versions. May run beside commits, as a file gets its name
        when it is complete. Raises OSError; then call it again.
        """
        new: dict[str, str] = {}
        for table in self._tables():
            modified = (
                (self._lance_dir / f"{table}{SUFFIX}" / VERSIONS).stat().st_mtime_ns
            )  # manifests are written last
            if self._seen.get(table) == modified:
                continue
            existing = set(immutable_files(self._lance_dir, table))
            for path in sorted(existing - self._by_path.keys()):
                try:
                    new[path] = file_checksum(self._lance_dir / path)
                except FileNotFoundError:
                    continue
            for path in [path for path in self._by_path if table_of(path) == table and path not in existing]:
                del self._by_path[path]
                self._stale += 1
            self._seen[table] = modified
        self._by_path |= new
        if self._torn or self._stale > max(MIN_STALE_LINES, len(self._by_path)):
            self._rewrite()
        elif new:
            self._torn = True  # until everything is written: half a line would corrupt the next one
            with (self._lance_dir / CHECKSUMS).open("a") as file:
                file.writelines(checksum_line(path, checksum) for path, checksum in new.items())
            self._torn = False
        return len(new)

    def _tables(self) -> list[str]:
        return sorted(entry.name.removesuffix(SUFFIX) for entry in self._lance_dir.glob(f"*{SUFFIX}"))

    def _rewrite(self) -> None:
        lines = "".join(checksum_line(path, checksum) for path, checksum in sorted(self._by_path.items()))
        replace_file(self._lance_dir / CHECKSUMS, lines.encode())
        self._stale = 0
        self._torn = False
