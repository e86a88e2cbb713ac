"""Examples for the mention tagger: the words of chunks with their states, features and labels.

Chunks are those that the worker would embed, so that the tagger sees in training what it will see: a title in front,
300 characters, overlaps.
"""

import gzip
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from indexer.embedding.encoder import PromptedEncoder, TokenStates
from indexer.errors import UnparsableDocument
from indexer.extraction.mention_tagger import word_shares
from indexer.extraction.word_features import Words, word_features, words_of
from query_api.evaluation.graph_runner import labelled_offsets, prepared_from
from query_api.evaluation.labelled_graphs import LabelledGraph
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

ENTITY_TYPES = {
    "PER": "person",
    "ORG": "organisation",
    "LOC": "place",
    "TIME": "time",
    "NUM": "number",
    "MISC": "thing",
}
UNKNOWN = -100  # the label of a word that says nothing: of the title, or of a name that the chunk cuts
MAX_CHUNKS = 8  # of an unlabelled document


@dataclass
class Example:
    """One chunk. `states` (n_words, layers x width) float16, `features` (n_words, FEATURES) uint8, `labels` (n_words,).
    `teacher` are probabilities of labels that other models gave, (n_words, n_labels) float32."""

    document: int
    states: NDArray[np.float16]
    features: NDArray[np.uint8]
    labels: NDArray[np.int64]
    teacher: NDArray[np.float32] | None = None


def labelled_examples(graphs: Sequence[LabelledGraph], encoder: PromptedEncoder) -> list[Example]:
    """The chunks of labelled documents, in their order."""
    return [
        Example(number, *inputs, _labels(graph, prepared, chunk, words))
        for number, graph in enumerate(graphs)
        for prepared in [prepared_from(graph)]
        for chunk, (words, *inputs) in enumerate(_inputs(prepared, encoder))
    ]


def unlabelled_examples(files: Iterable[Path], documents: int, encoder: PromptedEncoder, seed: int) -> list[Example]:
    """Chunks of some documents of each file, evenly chosen: JSON lines with `text`, and `title` where there is one."""
    examples = []
    for file in files:
        chosen = random.Random(seed)
        lines = list(_lines(file))
        for number, (title, text) in enumerate(chosen.sample(lines, min(documents, len(lines)))):
            upsert = DocumentUpsert(
                key=DocumentKey("unlabelled", str(number)),
                content=text.encode("utf-8", "replace"),
                content_type="text/plain",
                title=title or None,
            )
            try:
                prepared = prepare(upsert, ChunkingParameters())
            except UnparsableDocument:
                continue
            inputs = list(_inputs(prepared, encoder))
            for words, states, features in chosen.sample(inputs, min(MAX_CHUNKS, len(inputs))):
                unknown = np.full(len(words.words), UNKNOWN, dtype=np.int64)
                examples.append(Example(-1, states, features, unknown[: len(states)]))
    return examples


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        for line in lines:
            document = json.loads(line)
            if document.get("text", "").strip():
                yield document.get("title") or "", document["text"]


def _inputs(
    prepared: PreparedDocument, encoder: PromptedEncoder
) -> Iterator[tuple[Words, NDArray[np.float16], NDArray[np.uint8]]]:
    def read(
        texts: Sequence[str], states: Sequence[TokenStates]
    ) -> list[tuple[Words, NDArray[np.float16], NDArray[np.uint8]]]:
        return [inputs_of(*each) for each in zip(texts, states, strict=True)]

    def inputs_of(text: str, states: TokenStates) -> tuple[Words, NDArray[np.float16], NDArray[np.uint8]]:
        words = words_of(text)
        pooled = (word_shares(words, states) @ np.concatenate(states.layers, axis=1)).astype(np.float16)
        return words, pooled, word_features(text, words)[: len(pooled)].astype(np.uint8)

    return iter(encoder.encode_tokens(prepared.embedding_texts, read)[1])


def _labels(graph: LabelledGraph, prepared: PreparedDocument, chunk: int, words: Words) -> NDArray[np.int64]:
    """The label of each word. Those before the chunk's own text are unknown, and those of a name that the chunk cuts or
    that cuts a word."""
    one = prepared.chunked.chunks[chunk]
    before = len(prepared.embedding_texts[chunk]) - len(one.text)
    offsets = labelled_offsets(graph.text, prepared)
    canonical = {place: at for at, place in offsets.items()}
    starts, ends = words.starts - before + one.start, words.ends - before + one.start
    labels = np.where(words.starts < before, UNKNOWN, 0)
    kinds = list(ENTITY_TYPES)
    for mention in graph.mentions:
        start, end = canonical.get(mention.start), canonical.get(mention.end - 1)
        if start is None or end is None or end < one.start or start >= one.end:
            continue
        within = np.flatnonzero((words.starts >= before) & (starts <= end) & (ends > start))
        if not within.size:
            continue
        whole = start >= one.start and end < one.end and starts[within[0]] == start and ends[within[-1]] == end + 1
        labels[within] = 2 * kinds.index(mention.kind) + 2 if whole else UNKNOWN
        if whole:
            labels[within[0]] -= 1
    return labels
