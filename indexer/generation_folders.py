"""Generations on disk: `<data dir>/generations/<name>/{lance,graph,snapshots,manifest.json}`; the file `CURRENT`."""

import hashlib
import os
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Self

import msgspec
import structlog

from indexer.errors import HEALING, DamagedStore, IncompatibleGeneration, OtherFormat
from schemas.errors import Failure
from schemas.generations import GENERATION_NAME, Build, GenerationPipeline
from schemas.settings import MIB, EmbeddingProvider


class Sealed(msgspec.Struct, frozen=True):
    """Mixed into a manifest, whose last field is `sealed: str = ""`."""

    def seal(self) -> Self:
        """With the checksum of the other fields."""
        fields = msgspec.json.encode(msgspec.structs.replace(self, sealed=""))
        return msgspec.structs.replace(self, sealed=hashlib.sha256(fields).hexdigest()[:32])


CURRENT = "CURRENT"
CURRENT_COPY = "generations/CURRENT"

log = structlog.get_logger(__name__)


class LogIdentity(msgspec.Struct, frozen=True):
    """The cluster's ids of the topics that a generation is a view of: 32 hex digits, empty before Kafka 2.8.

    A topic that was deleted and created again has another id.
    """

    documents: str
    graph: str


FORMAT = 2  # of the stores


class _Format(msgspec.Struct):
    format: int


class Manifest(Sealed, frozen=True, kw_only=True):
    """The pipeline that all rows of a generation were made with.

    `log` is None until the worker has seen its topics. On disk, `sealed` is the checksum of the other fields.
    """

    generation: str
    embedding_provider: EmbeddingProvider
    embedding_model: str
    embedding_digest: str
    dimension: int
    chunk_characters: int
    chunk_overlap: int
    passage_characters: int
    passage_overlap: float
    extractor: str
    log: LogIdentity | None = None

    @property
    def documents_topic_id(self) -> str:
        """Of the topic that it was filled from; empty where that is not known."""
        return "" if self.log is None else self.log.documents

    format: int = FORMAT
    sealed: str = ""


@dataclass(frozen=True)
class Generation:
    """The paths of one generation."""

    data_dir: Path
    name: str

    @property
    def root(self) -> Path:
        return self.data_dir / "generations" / self.name

    @property
    def lance_dir(self) -> Path:
        return self.root / "lance"

    @property
    def incomplete_graph_dir(self) -> Path:
        """There while the graph lacks documents of the tables: its snapshots until it has all."""
        return self.root / "incomplete-graph"

    @property
    def snapshots_dir(self) -> Path:
        return self.root / "snapshots"

    @property
    def communities_dir(self) -> Path:
        return self.root / "communities"

    @property
    def kuzu_dir(self) -> Path:
        """Graphs published for Cypher."""
        return self.root / "kuzu"

    @property
    def manifest_path(self) -> Path:
        return self.root / "manifest.json"

    @property
    def manifest_copy_path(self) -> Path:
        """Read where the manifest is damaged."""
        return self.root / "manifest.copy.json"

    @property
    def build_path(self) -> Path:
        """How far its build is; there is none in the first generation of a data directory."""
        return self.root / "build.json"

    def size_bytes(self) -> int:
        """Of all its files; the worker removes some meanwhile, and these do not count."""
        total = 0
        for folder, _, names in os.walk(self.root):
            for name in names:
                with suppress(FileNotFoundError):
                    total += Path(folder, name).lstat().st_size
        return total

    @property
    def damage_path(self) -> Path:
        """There where its tables are damaged, and another generation takes its place."""
        return self.root / "damaged.json"

    @property
    def reread_path(self) -> Path:
        """There where retrievals and feedback were set aside, and their topic is to be read from its beginning."""
        return self.root / "reread-provenance"

    @property
    def missed_deletes_path(self) -> Path:
        """Partitions whose documents have yet to be compared with the log."""
        return self.root / "missed-deletes.json"

    @property
    def restored_path(self) -> Path:
        """There where it was restored from a backup, until its worker has let its consumer group begin."""
        return self.root / "restored"


def current_generation(data_dir: Path) -> Generation | None:
    """The generation that `CURRENT` names, or its copy where that names none; None in an empty data directory.

    Raises DamagedStore if neither names one that is there: a worker names one by `restore_current`.
    """
    path = data_dir / CURRENT
    existing = {generation.name: generation for generation in generations(data_dir)}
    for each in _named(data_dir):
        if each in existing:
            return existing[each]
    if not existing and not path.exists():
        return None
    raise DamagedStore(
        f"The file {path} names no generation that is there: it holds {_named_in(path)[:80]!r}. A worker names one "
        "automatically, and makes the stores again from the log where they are gone. Where none runs, start one with "
        "'thalweg up'."
    )


def _last_written(data_dir: Path, named: Sequence[str], existing: Sequence[Generation]) -> str:
    """The name of a generation that was lost with its folder, of the one that was written last, or a new one."""
    lost = [each for each in named if GENERATION_NAME.fullmatch(each)]
    latest = max(existing, key=_written_at, default=None)
    return lost[0] if lost else latest.name if latest else new_generation_name(data_dir)


def restore_current(data_dir: Path, running: Generation | None = None) -> None:
    """Name a generation in `CURRENT` and its copy where they are damaged: what the other one names, the one that is
    `running`, or else the one that was written last.

    Where a generation that is named is gone, its folder is made: its stores are then missing, and made again as
    damaged ones are. Raises OSError.
    """
    named = _named(data_dir)
    existing = {generation.name: generation for generation in generations(data_dir)}
    if not existing and not (data_dir / CURRENT).exists():
        return
    name = next((each for each in named if each in existing), running.name if running is not None else None)
    name = name or _last_written(data_dir, named, list(existing.values()))
    if named != [name, name] or name not in existing:
        log.warning("the current generation is named again", generation=name, files_held=[each[:80] for each in named])
        Generation(data_dir, name).root.mkdir(parents=True, exist_ok=True)
        for file in (CURRENT, CURRENT_COPY):
            replace_file(data_dir / file, f"{name}\n".encode())


def _written_at(generation: Generation) -> float:
    """When its tables were last written, in seconds."""
    return max((file.stat().st_mtime for file in generation.lance_dir.glob("*/_versions/*")), default=0.0)


def _named(data_dir: Path) -> list[str]:
    return [_named_in(data_dir / name) for name in (CURRENT, CURRENT_COPY)]


def _named_in(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace").strip()
    except PermissionError:
        raise
    except OSError:
        return ""


def generations(data_dir: Path) -> list[Generation]:
    """Those that there are, by name."""
    folders = (path for path in (data_dir / "generations").glob("g*") if path.is_dir())
    return [Generation(data_dir, path.name) for path in sorted(folders)]


def open_generation(data_dir: Path, manifest: Manifest) -> Generation:
    """The current generation, created if there is none. Raises IncompatibleGeneration if its manifest differs."""
    generation = current_generation(data_dir)
    if generation is None:
        generation = make_generation(data_dir, manifest)
        switch_to(generation)
        return generation
    stored = read_manifest(generation)
    if differing := pipeline_differences(stored, manifest):
        raise IncompatibleGeneration(
            f"The configuration does not match generation {generation.name} in {data_dir} "
            f"({describe_differences(differing)}). {incompatible_advice()}"
        )
    restore_manifest(generation, stored)
    restore_current(data_dir, generation)
    return generation


def make_generation(data_dir: Path, manifest: Manifest) -> Generation:
    """The generation that the manifest names, made where it is missing; what it was made with stays as it is.

    Raises IncompatibleGeneration where it was begun with another pipeline.
    """
    generation = Generation(data_dir, manifest.generation)
    for folder in (generation.lance_dir, generation.snapshots_dir):
        folder.mkdir(parents=True, exist_ok=True)
    if not generation.manifest_path.exists():
        write_manifest(generation, manifest)
    elif differing := pipeline_differences(read_manifest(generation), manifest):
        raise IncompatibleGeneration(
            f"The build of generation {generation.name} was begun with another configuration "
            f"({describe_differences(differing)}). Go back to that one, or drop it with 'thalweg generations drop "
            f"{generation.name}' and build another with 'thalweg rebuild'."
        )
    return generation


def switch_to(generation: Generation) -> None:
    """Make it the current one, atomically. Raises DamagedStore where it has no manifest."""
    read_manifest(generation)
    for name in (CURRENT, CURRENT_COPY):
        replace_file(generation.data_dir / name, f"{generation.name}\n".encode())


def pipeline_differences(stored: Manifest, configured: Manifest) -> dict[str, tuple[object, object]]:
    """{field of the manifest: (stored, configured)} for what makes other rows of the same documents."""
    pairs = {name: (getattr(stored, name), getattr(configured, name)) for name in GenerationPipeline.model_fields}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def describe_differences(differing: Mapping[str, tuple[object, object]]) -> str:
    return "; ".join(f"{name}: stored {stored!r}, configured {new!r}" for name, (stored, new) in differing.items())


def read_build(generation: Generation) -> Build | None:
    """How far its build is; None for one that was not built beside another, or whose file cannot be read just now."""
    try:
        return Build.model_validate_json(generation.build_path.read_bytes())
    except (OSError, ValueError):
        return None


def write_build(generation: Generation, build: Build) -> None:
    """Raises OSError."""
    generation.root.mkdir(parents=True, exist_ok=True)
    replace_file(generation.build_path, build.model_dump_json(indent=2).encode())


def new_generation_name(data_dir: Path) -> str:
    """A unique name: the next number, and six random hex digits.

    The contributions topic and the consumer group are named after it. With a reused name, new stores would read
    contributions of the old ones, with documents that the log may no longer contain.
    """
    numbers = [int(path.name[1:5]) for path in (data_dir / "generations").glob("g[0-9][0-9][0-9][0-9]*")]
    return f"g{max(numbers, default=0) + 1:04d}-{secrets.token_hex(3)}"


def record_log(generation: Generation, log: LogIdentity) -> None:
    """Store in the manifest which topics the generation is a view of."""
    write_manifest(generation, msgspec.structs.replace(read_manifest(generation), log=log))


def write_manifest(generation: Generation, manifest: Manifest) -> None:
    """The manifest and its copy, as far as they are not as they should be."""
    content = msgspec.json.format(msgspec.json.encode(manifest.seal()))
    for path in (generation.manifest_path, generation.manifest_copy_path):
        if not path.exists() or path.read_bytes() != content:
            replace_file(path, content)


def restore_manifest(generation: Generation, known: Manifest) -> Manifest:
    """Write the manifest and its copy again where they are damaged, as `known` where both are; what they hold now.

    Raises DamagedStore where the generation is gone, OSError.
    """
    if not generation.root.exists():
        raise DamagedStore(f"The folder {generation.root} is gone. {HEALING}")
    try:
        known = read_manifest(generation)
    except DamagedStore:
        log.warning("the manifest and its copy are both damaged", generation=generation.name)
    for name, what in damaged_manifests(generation):
        log.warning("a damaged manifest is written again", file=name, what=what)
    write_manifest(generation, known)
    return known


def require_room(base: Generation) -> None:
    """Raises Failure where a second generation as large as this one, and a tenth, does not fit on the disk."""
    needed = int(1.1 * base.size_bytes())
    free = shutil.disk_usage(base.data_dir).free
    if free < needed:
        raise Failure(
            f"A second generation takes about {needed / MIB:,.0f} MiB, and {free / MIB:,.0f} MiB are free on the disk "
            f"of {base.data_dir}: make room, or drop one that 'thalweg generations list' shows."
        )


def incompatible_advice() -> str:
    """What to do if the stores were made by another pipeline."""
    return (
        "Searches are answered from it, and what is published waits in the log. Either go back to the program and the "
        "settings it was made with, or run 'thalweg rebuild': it builds the next generation from the log beside this "
        "one, and switches to it when it is complete."
    )


def republish_advice(data_dir: Path) -> str:
    """What to type if the stores contain documents that no log contains any more."""
    here, there = _here_and_aside(data_dir)
    return (
        "If the log is lost, these stores are the only copy of the documents: publish them to the new one, and keep "
        "the stores until that is done:\n"
        f"  thalweg export --data-dir {here} documents.jsonl\n"
        f"{_move_aside(here, there)}\n"
        f"  thalweg load --data-dir {here} documents.jsonl"
    )


def _here_and_aside(data_dir: Path) -> tuple[str, str]:
    """The data directory and an unused path beside it, quoted for a shell."""
    named = data_dir if data_dir.name not in ("", "..") else data_dir.resolve()
    aside = next(path for number in count(1) if not (path := named.parent / f"{named.name}-old-{number}").exists())
    return shlex.quote(str(data_dir)), shlex.quote(str(aside))


def _move_aside(here: str, there: str) -> str:
    """The commands that put the stores there, and start again without them."""
    return f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/\n  thalweg up --data-dir {here}"


def read_manifest(generation: Generation) -> Manifest:
    """From the copy where the manifest is damaged. Raises DamagedStore when neither can be read, OtherFormat for
    one of another version."""
    problem = ""
    for path in (generation.manifest_path, generation.manifest_copy_path):
        _require_known_format(generation, path)
        found = _intact_manifest(path)
        if isinstance(found, Manifest):
            return found
        problem = problem or f"{path} {found}."
    raise DamagedStore(f"{problem} {HEALING}")


def _require_known_format(generation: Generation, path: Path) -> None:
    try:
        made = msgspec.json.decode(path.read_bytes(), type=_Format).format
    except (OSError, ValueError):
        return
    if made == FORMAT:
        return
    found = (
        f"Generation {generation.name} in {generation.data_dir} was made by "
        f"{'a newer' if made > FORMAT else 'an earlier'} version of Thalweg: it has format {made}, and this version "
        f"reads {FORMAT}. Nothing was changed."
    )
    if made > FORMAT:
        raise OtherFormat(f"{found} Run that version on it, or choose another data directory.")
    here, there = _here_and_aside(generation.data_dir)
    raise OtherFormat(
        f"{found} Have the stores made again from the log, which holds every document:\n"
        f"{_move_aside(here, there)}\n"
        f"Once it is ready, {there} can be deleted."
    )


def damaged_manifests(generation: Generation) -> list[tuple[str, str]]:
    """(file, what is wrong with it)."""
    found = {path.name: _intact_manifest(path) for path in (generation.manifest_path, generation.manifest_copy_path)}
    return [(name, what) for name, what in found.items() if isinstance(what, str)]


def _intact_manifest(path: Path) -> Manifest | str:
    """What a file holds; or what is wrong with it."""
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        return "is gone"
    except PermissionError:
        raise
    except (ValueError, OSError) as error:  # empty, cut off, no text, another type
        return f"cannot be read as a manifest: {error}"
    if manifest.sealed != manifest.seal().sealed:
        return "does not match its checksum"
    return msgspec.structs.replace(manifest, sealed="")


def current_manifest(data_dir: Path) -> Manifest | None:
    """The manifest of the current generation; None if there is none."""
    generation = current_generation(data_dir)
    return None if generation is None else read_manifest(generation)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
