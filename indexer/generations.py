"""Generations on disk: `<data dir>/generations/<name>/{lance,graph,snapshots,manifest.json}` and the file `CURRENT`."""

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
    """The topics that a generation is a view of, by their ids in the cluster: 32 hex digits, empty where the brokers
    know none (before Kafka 2.8). A topic that was deleted and made again has another id."""

    documents: str
    graph: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation is made with; the same for all of its rows. `log` is None until the worker has seen its topics,
    and in a generation of an earlier program."""

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
    """The places of one generation."""

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
        """Partitions whose documents have to be compared with the log; there while that is to be done."""
        return self.root / "missed-deletes.json"


def current_generation(data_dir: Path) -> Generation | None:
    """The generation that `CURRENT` names, or None in a data directory that has none yet.

    Raises DamagedStore when it names none that is there.
    """
    try:
        content = (data_dir / "CURRENT").read_bytes()
    except FileNotFoundError:
        return None
    return Generation(data_dir, _named(data_dir, content))


def _named(data_dir: Path, content: bytes) -> str:
    """The generation that these bytes name. Raises DamagedStore, with what to write, when it is not there."""
    name = content.decode(errors="replace").strip()
    there = sorted(place.name for place in (data_dir / "generations").glob("*") if place.is_dir())
    if name in there:
        return name
    said = f"The file {data_dir / 'CURRENT'} names no generation that is there: it holds {name[:80]!r}."
    if not there:
        raise DamagedStore(f"{said} There are none. {repair_advice(data_dir)}")
    path = shlex.quote(str(data_dir / "CURRENT"))
    raise DamagedStore(f"{said} Name the newest one in it:\n  echo {there[-1]} > {path}")


def open_generation(data_dir: Path, manifest: Manifest) -> Generation:
    """The current generation, made if there is none.

    Raises IncompatibleGeneration when it was made with something else than `manifest` says.
    """
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
    """A name that no generation had before, here or elsewhere: the next number, and six random hex digits.

    Its graph topic and its consumer group are named after it. Were the name used again, stores made anew would read
    the contributions of the old ones, which hold documents that the log may have no more.
    """
    numbers = [int(path.name[1:5]) for path in (data_dir / "generations").glob("g[0-9][0-9][0-9][0-9]*")]
    return f"g{max(numbers, default=0) + 1:04d}-{secrets.token_hex(3)}"


def record_log(generation: Generation, log: LogIdentity) -> None:
    """Note in the manifest which topics the generation is a view of."""
    manifest = msgspec.structs.replace(read_manifest(generation), log=log)
    replace_file(generation.manifest_path, msgspec.json.format(msgspec.json.encode(manifest)))


def incompatible_advice(data_dir: Path, *, other_encoder: bool) -> str:
    """What to type where the stores in a data directory are not those that this program would make. With
    `other_encoder` a service on them may have no vector of a question to compare with theirs."""
    return (
        "Go back to the program and the settings it was made with. Or have the stores made anew from the log, which "
        f"holds every document; the old ones answer searches meanwhile:\n{_rebuild(data_dir, other_encoder)}"
    )


def rebuild_advice(data_dir: Path) -> str:
    """What to type to have the stores in a data directory made anew from the log of documents."""
    return (
        "Have the stores made anew from the log, which holds every document; the old ones answer searches meanwhile:\n"
        f"{_rebuild(data_dir, other_encoder=False)}"
    )


def republish_advice(data_dir: Path) -> str:
    """What to type where the stores in a data directory hold documents that no log holds any more."""
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
    """The data directory, and a place beside it that nothing has the name of, as a shell takes them."""
    named = data_dir if data_dir.name not in ("", "..") else data_dir.resolve()
    aside = next(place for number in count(1) if not (place := named.parent / f"{named.name}-old-{number}").exists())
    return shlex.quote(str(data_dir)), shlex.quote(str(aside))


def repair_advice(data_dir: Path) -> str:
    """What to type where something in a data directory is damaged."""
    here, there = _here_and_aside(data_dir)
    return (
        "Every store comes back from the log, which holds every document. End what runs on this data directory, then:\n"
        f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/ && thalweg up --data-dir {here}\n"
        f"Once 'thalweg status --data-dir {here}' tells no lag, delete {there}."
    )


def read_manifest(generation: Generation) -> Manifest:
    """What the generation was made with. Raises DamagedStore when its manifest is gone or cannot be read."""
    try:
        return msgspec.json.decode(generation.manifest_path.read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise DamagedStore(f"{generation.manifest_path} is gone. {repair_advice(generation.data_dir)}") from error
    except ValueError as error:  # empty, cut off, no text, another type
        raise DamagedStore(
            f"{generation.manifest_path} cannot be read as a manifest: {error}. {repair_advice(generation.data_dir)}"
        ) from error


def current_manifest(data_dir: Path) -> Manifest | None:
    """What the stored rows were made with, or None where nothing is stored yet."""
    generation = current_generation(data_dir)
    return None if generation is None else read_manifest(generation)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part, also after a crash."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
