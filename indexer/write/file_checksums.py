"""Recording the checksums of the LanceDB files, soon after each is written."""

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

LEAST_STALE_LINES = 500


class ChecksumRecorder:
    """Keeps the file of checksums up to date for the one process that writes the tables. Not thread-safe."""

    def __init__(self, lance_dir: Path) -> None:
        """Takes what was recorded as the truth. Files that are not there any more lose their line."""
        self._lance_dir = lance_dir
        recorded = read_checksums(lance_dir).by_path
        self._by_path = {path: checksum for path, checksum in recorded.items() if (lance_dir / path).exists()}
        self._stale = 0
        self._torn = False
        self._seen: dict[str, int] = {}
        self._rewrite()

    def record(self) -> int:
        """Read and record the files that came since the last call; how many these were.

        Costs a look at each table, a walk through those with new versions, and reading what is new. May be called at
        any time, beside commits: a file has its name only when it is whole. Raises OSError; then call it again.
        """
        new: dict[str, str] = {}
        for table in self._tables():
            looked = self._looked(table)
            if self._seen.get(table) == looked:
                continue
            held = set(immutable_files(self._lance_dir, table))
            for path in sorted(held - self._by_path.keys()):
                try:
                    new[path] = file_checksum(self._lance_dir / path)
                except FileNotFoundError:
                    continue
            for path in [path for path in self._by_path if table_of(path) == table and path not in held]:
                del self._by_path[path]
                self._stale += 1
            self._seen[table] = looked
        self._by_path |= new
        if self._torn or self._stale > max(LEAST_STALE_LINES, len(self._by_path)):
            self._rewrite()
        elif new:
            self._torn = True  # until all of it is written: half a line would spoil the next
            with (self._lance_dir / CHECKSUMS).open("a") as file:
                file.writelines(checksum_line(path, checksum) for path, checksum in new.items())
            self._torn = False
        return len(new)

    def _tables(self) -> list[str]:
        return sorted(entry.name.removesuffix(SUFFIX) for entry in self._lance_dir.glob(f"*{SUFFIX}"))

    def _looked(self, table: str) -> int:
        """Changes with every version: Lance writes its manifest last."""
        return (self._lance_dir / f"{table}{SUFFIX}" / VERSIONS).stat().st_mtime_ns

    def _rewrite(self) -> None:
        lines = "".join(checksum_line(path, checksum) for path, checksum in sorted(self._by_path.items()))
        replace_file(self._lance_dir / CHECKSUMS, lines.encode())
        self._stale = 0
        self._torn = False
