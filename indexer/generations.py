"""Generations on disk: `<data dir>/generations/g0001/{lance,graph,snapshots,manifest.json}` and the file `CURRENT`."""

import os
import shlex
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from indexer.errors import IncompatibleGeneration
from schemas.settings import EmbeddingProvider

FIRST = "g0001"
_ONLY_WORDS = (
    "That one needs THALWEG_EMBEDDING__* as they were; where their encoder is there no more, as after an upgrade that "
    "tells encoders apart otherwise, it answers searches by words only (--mode keyword).\n"
)


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a generation is made with; the same for all of its rows."""

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


def current_generation(data_dir: Path) -> Generation | None:
    """The generation that `CURRENT` names, or None in a data directory that has none yet."""
    try:
        name = (data_dir / "CURRENT").read_text().strip()
    except FileNotFoundError:
        return None
    return Generation(data_dir, name)


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
        if name != "generation" and getattr(stored, name) != getattr(manifest, name)
    ]
    if differing:
        other_encoder = any(each.startswith(("embedding_", "dimension")) for each in differing)
        raise IncompatibleGeneration(
            f"Generation {generation.name} in {data_dir} was made otherwise ({'; '.join(differing)}). "
            f"{how_to_go_on(data_dir, other_encoder=other_encoder)}"
        )
    return generation


def how_to_go_on(data_dir: Path, *, other_encoder: bool) -> str:
    """What to type where the stores in a data directory are not those that this program would make. With
    `other_encoder` a service on them may have no vector of a question to compare with theirs."""
    named = data_dir if data_dir.name not in ("", "..") else data_dir.resolve()
    aside = next(place for number in count(1) if not (place := named.parent / f"{named.name}-old-{number}").exists())
    here, there = shlex.quote(str(data_dir)), shlex.quote(str(aside))
    return (
        "Go back to the program and the settings it was made with. Or have the stores made anew from the log, which "
        "holds every document; the old ones answer searches meanwhile:\n"
        f"  mkdir {there} && mv {here}/CURRENT {here}/generations {there}/\n"
        f"  thalweg up --data-dir {here}\n"
        f"  thalweg serve --data-dir {there} --port 8421\n"
        f"{_ONLY_WORDS if other_encoder else ''}"
        f"Once 'thalweg status --data-dir {here}' tells no lag, end the last one and delete {there}."
    )


def read_manifest(generation: Generation) -> Manifest:
    return msgspec.json.decode(generation.manifest_path.read_bytes(), type=Manifest)


def kept_manifest(data_dir: Path) -> Manifest | None:
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
