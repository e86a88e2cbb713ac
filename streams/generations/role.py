"""Which generation a worker runs, and how: the live one, or another one beside it; as it was made, if it was."""

import asyncio
from functools import cached_property
from pathlib import Path

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import extractor_of
from indexer.embedding.backends import load_encoder, load_matching_encoder, names_model_of
from indexer.embedding.encoder import PromptedEncoder
from indexer.errors import DamagedStore, TransientStoreError
from indexer.extraction.mention_tagger import tagger_for
from indexer.generation_comparison import EarlierOutcomes
from indexer.generation_folders import (
    Generation,
    Manifest,
    current_generation,
    current_manifest,
    make_generation,
    new_generation_name,
    open_generation,
    read_manifest,
)
from indexer.integrity.noted_damage import read_damage
from indexer.read.known_vectors import EarlierVectors, same_tagger, same_vectors
from streams.indexing.embed import VectorLookup
from streams.kafka.producer import IsNew
from streams.kafka.records import DeadLetter
from streams.settings import WorkerSettings

_CHUNKING_FIELDS = ("passage_characters", "passage_overlap", "chunk_characters", "chunk_overlap")


class WorkerRole:
    """`build` names the generation that is built beside the live one; None for the worker that runs the live one."""

    def __init__(self, settings: WorkerSettings, build: str | None) -> None:
        self.build = build
        self.data_dir: Path = settings.storage.data_dir.absolute()
        self._settings = settings

    @cached_property
    def _stored(self) -> Manifest | None:
        """What the generation was made with; None for one that has yet to be made."""
        if self.build is None:
            return current_manifest(self.data_dir)
        generation = Generation(self.data_dir, self.build)
        return read_manifest(generation) if generation.manifest_path.exists() else None

    @property
    def folder(self) -> Path:
        """Where the worker's state is written."""
        return self.data_dir if self.build is None else Generation(self.data_dir, self.build).root

    @property
    def chunking(self) -> ChunkingParameters:
        """As it was made with; by the settings, where it has yet to be made."""
        if self._stored is None:
            return self._settings.chunking.parameters()
        return ChunkingParameters(**{name: getattr(self._stored, name) for name in _CHUNKING_FIELDS})

    def load_encoder(self) -> PromptedEncoder:
        """Raises what `indexer.embedding.backends.load_encoder` raises."""
        if self._stored is not None:
            return load_matching_encoder(self._settings.embedding, self._stored)
        try:
            live = current_manifest(self.data_dir)
        except DamagedStore:
            live = None
        return load_encoder(self._settings.embedding, live)  # `auto` is what the live one has

    def open_generation(self, encoder: PromptedEncoder) -> Generation:
        """The first one of a data directory is made. Raises IncompatibleGeneration where this program cannot continue
        it."""
        chunking = self.chunking
        manifest = Manifest(
            generation=self.build or new_generation_name(self.data_dir),
            embedding_provider=encoder.provider,
            embedding_model=encoder.model,
            embedding_digest=encoder.digest,
            dimension=encoder.dimension,
            extractor=extractor_of(tagger.version if (tagger := tagger_for(encoder)) else None),
            **{name: getattr(chunking, name) for name in _CHUNKING_FIELDS},
        )
        return (open_generation if self.build is None else make_generation)(self.data_dir, manifest)

    def note(self) -> str | None:
        """What the settings ask for and the live generation was not made with."""
        stored = self._stored
        if self.build is not None or stored is None:
            return None
        differing = ["model"] * (not names_model_of(self._settings.embedding, stored))
        differing += ["size of chunks and passages"] * (self._settings.chunking.parameters() != self.chunking)
        if not differing:
            return None
        return (
            f"The settings ask for another {' and another '.join(differing)} than generation {stored.generation} was "
            "made with, which stays as it is: 'thalweg rebuild' makes the next one by them and switches to it."
        )

    def vectors(self, generation: Generation, own: VectorLookup) -> VectorLookup:
        """Where vectors are looked up before a text is encoded: in a build also where the earlier ones are."""
        earlier = self._earlier(generation)
        try:
            manifests = None if earlier is None else (read_manifest(earlier), read_manifest(generation))
        except DamagedStore:
            return own
        if earlier is None or manifests is None or not same_vectors(*manifests):
            return own
        return EarlierVectors(earlier, own.known_vectors, with_entities=same_tagger(*manifests))

    def is_new_letter(self, generation: Generation, documents_topic: str) -> IsNew | None:
        """Which dead letters of a build the live generation has not sent already; None for all."""
        earlier = self.intact_base(generation)
        if earlier is None:
            return None
        try:
            outcomes = EarlierOutcomes(earlier)
        except (TransientStoreError, DamagedStore, ValueError):  # a table of it is gone
            return None

        async def is_new(letter: DeadLetter) -> bool:
            if letter.topic != documents_topic:
                return True
            try:
                return not await asyncio.to_thread(outcomes.refused, letter.partition, letter.offset, letter.key)
            except (TransientStoreError, DamagedStore):
                return True

        return is_new

    def intact_base(self, generation: Generation) -> Generation | None:
        """The live generation that a build is compared with; None where damage was noted of it."""
        earlier = self._earlier(generation)
        return None if earlier is None or read_damage(earlier) is not None else earlier

    def _earlier(self, generation: Generation) -> Generation | None:
        try:
            live = current_generation(self.data_dir)
        except DamagedStore:
            return None
        return None if self.build is None or live is None or live.name == generation.name else live
