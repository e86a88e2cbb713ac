"""Generations on disk: `<data dir>/generations/<name>/{lance,graph,snapshots,manifest.json}`; the file `CURRENT`."""

import os
import secrets
import shlex
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from indexer.errors import DamagedStore, IncompatibleGeneration
from schemas.settings import EmbeddingProvider

_ONLY_WORDS = (
    "That one needs THALWEG_EMBEDDING__* as they were; where their encoder is there no more, as after an upgrade that "
    "tells encoders apart otherwise, it answers searches by words only (--mode keyword).\n"
)


class LogIdentity(msgspec.Struct, frozen=True):
    """The cluster's ids of the topics that a generation is a view of: 32 hex digits, empty before Kafka 2.8.

    A topic that was deleted and created again has another id.
    """

    documents: str
    graph: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The pipeline that all rows of a generation were made with.

    `log` is None until the worker has seen its topics, and in a generation of an earlier program.
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
    def graph_path(self) -> Path:
        return self.root / "graph" / "graph.kuzu"

    @property
    def snapshots_dir(self) -> Path:
        return self.root / "snapshots"

    @property
    def manifest_path(self) -> Path:
        return self.root / "manifest.json"

    @property
    def missed_deletes_path(self) -> Path:
        """Partitions whose documents have yet to be compared with the log."""
        return self.root / "missed-deletes.json"


def current_generation(data_dir: Path) -> Generation | None:
    """The generation that `CURRENT` names; None in an empty data directory.

    Raises DamagedStore, with how to repair it, if that does not exist.
    """
    try:
        content = (data_dir / "CURRENT").read_bytes()
    except FileNotFoundError:
        return None
    name = content.decode(errors="replace").strip()
    existing = sorted(path.name for path in (data_dir / "generations").glob("*") if path.is_dir())
    if name in existing:
        return Generation(data_dir, name)
    problem = f"The file {data_dir / 'CURRENT'} names no generation that is there: it holds {name[:80]!r}."
    if not existing:
        raise DamagedStore(f"{problem} There are none. {repair_advice(data_dir)}")
    path = shlex.quote(str(data_dir / "CURRENT"))
    raise DamagedStore(f"{problem} Name the newest one in it:\n  echo {existing[-1]} > {path}")


def open_generation(data_dir: Path, manifest: Manifest) -> Generation:
    """The current generation, created if there is none. Raises IncompatibleGeneration if its manifest differs."""
    generation = current_generation(data_dir)
    if generation is None:
        generation = Generation(data_dir, manifest.generation)
        for folder in (generation.lance_dir, generation.graph_path.parent, generation.snapshots_dir):
            folder.mkdir(parents=True, exist_ok=True)
        replace_file(generation.manifest_path, msgspec.json.format(msgspec.json.encode(manifest)))
        replace_file(data_dir / "CURRENT", f"{generation.name}\n".encode())
        return generation
    stored = read_manifest(generation)
    differing = [
        f"{name}: stored {getattr(stored, name)!r}, asked {getattr(manifest, name)!r}"
        for name in manifest.__struct_fields__
        if name not in ("generation", "log") and getattr(stored, name) != getattr(manifest, name)
    ]
    if differing:
        other_encoder = any(each.startswith(("embedding_", "dimension")) for each in differing)
        raise IncompatibleGeneration(
            f"Generation {generation.name} in {data_dir} was made otherwise ({'; '.join(differing)}). "
            f"{incompatible_advice(data_dir, other_encoder=other_encoder)}"
        )
    return generation


def new_generation_name(data_dir: Path) -> str:
    """A unique name: the next number, and six random hex digits.

    The graph topic and the consumer group are named after it. With a reused name, new stores would read contributions
    of the old ones, with documents that the log may no longer contain.
    """
    numbers = [int(path.name[1:5]) for path in (data_dir / "generations").glob("g[0-9][0-9][0-9][0-9]*")]
    return f"g{max(numbers, default=0) + 1:04d}-{secrets.token_hex(3)}"


def record_log(generation: Generation, log: LogIdentity) -> None:
    """Store in the manifest which topics the generation is a view of."""
    manifest = msgspec.structs.replace(read_manifest(generation), log=log)
    replace_file(generation.manifest_path, msgspec.json.format(msgspec.json.encode(manifest)))


def incompatible_advice(data_dir: Path, *, other_encoder: bool) -> str:
    """What to type if the stores were made by another pipeline. With `other_encoder`, queries may have no vectors that
    compare with theirs."""
    return (
        "Go back to the program and the settings it was made with. Or have the stores made anew from the log, which "
        f"holds every document; the old ones answer searches meanwhile:\n{_rebuild(data_dir, other_encoder)}"
    )


def rebuild_advice(data_dir: Path) -> str:
    """What to type to rebuild the stores from the log."""
    return (
        "Have the stores made anew from the log, which holds every document; the old ones answer searches meanwhile:\n"
        f"{_rebuild(data_dir, other_encoder=False)}"
    )


def republish_advice(data_dir: Path) -> str:
    """What to type if the stores contain documents that no log contains any more."""
    here, there = _here_and_aside(data_dir)
    return (
        "If the log is lost, these stores are the only copy of the documents: publish them to the new one, and keep "
        "the stores until that is done:\n"
        f"  thalweg export --data-dir {here} documents.jsonl\n"
        f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/\n"
        f"  thalweg up --data-dir {here}\n"
        f"  thalweg load --data-dir {here} documents.jsonl"
    )


def _rebuild(data_dir: Path, other_encoder: bool) -> str:
    here, there = _here_and_aside(data_dir)
    return (
        f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/\n"
        f"  thalweg up --data-dir {here}\n"
        f"  thalweg serve --data-dir {there} --port 8421\n"
        f"{_ONLY_WORDS if other_encoder else ''}"
        f"Once 'thalweg status --data-dir {here}' tells no lag, end the last one and delete {there}."
    )


def _here_and_aside(data_dir: Path) -> tuple[str, str]:
    """The data directory and an unused path beside it, quoted for a shell."""
    named = data_dir if data_dir.name not in ("", "..") else data_dir.resolve()
    aside = next(path for number in count(1) if not (path := named.parent / f"{named.name}-old-{number}").exists())
    return shlex.quote(str(data_dir)), shlex.quote(str(aside))


def repair_advice(data_dir: Path) -> str:
    """What to type if the stores are damaged."""
    here, there = _here_and_aside(data_dir)
    return (
        "Every store comes back from the log, which holds every document. End what runs on this data directory, then:\n"
        f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/ && thalweg up --data-dir {here}\n"
        f"Once 'thalweg status --data-dir {here}' tells no lag, delete {there}."
    )


def read_manifest(generation: Generation) -> Manifest:
    """Raises DamagedStore when the manifest is missing or cannot be read."""
    try:
        return msgspec.json.decode(generation.manifest_path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise DamagedStore(f"{generation.manifest_path} is gone. {repair_advice(generation.data_dir)}") from error
    except ValueError as error:  # empty, cut off, no text, another type
        raise DamagedStore(
            f"{generation.manifest_path} cannot be read as a manifest: {error}. {repair_advice(generation.data_dir)}"
        ) from error


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
