"""A document is read as its collection has chosen; by meaning, in two goes with the encoder between."""

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import (
    MAX_METADATA_BYTES,
    NO_EXTRACTOR,
    PreparationTask,
    decode_prepared,
    encode_task,
    prepare_bytes,
    sentences_of,
)
from indexer.documents import PreparedDocument
from schemas.events import DocumentUpsert
from schemas.graph_documents import EDGE_TYPE, NODE_TYPE
from schemas.ids import DocumentKey
from streams.indexing.document_steps import Choices, DecodedEvent
from streams.indexing.embed import WithoutVector
from streams.indexing.prepare import Parsers, Preparer
from tests.support.fakes.worker import Bench, upsert

SEMANTIC = ChunkingParameters(method="semantic")
TEXT = (
    "The Rhine rises in the Alps and flows past Basel. The Rhine is a long river and flows to the North Sea. "
    "The bread is baked from flour in the oven. The bread has a brown crust from the oven."
)


class ReaderHere:
    """Reads in this process."""

    max_metadata_bytes = MAX_METADATA_BYTES

    async def sentences(self, upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]:
        return sentences_of(upsert, chunking)

    async def prepare(self, task: PreparationTask) -> PreparedDocument:
        return decode_prepared(prepare_bytes(encode_task(task)))


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def event(text: str, chunking: ChunkingParameters | None, extractor: str | None = None) -> DecodedEvent:
    chosen = [{} if each is None else {"default": each} for each in (chunking, extractor)]
    document = DocumentUpsert(key=DocumentKey("default", "a"), content=text.encode(), content_type="text/plain")
    return DecodedEvent.from_record(upsert(0), document, Choices(*chosen))


class NoSandbox:
    async def run(self, _task: bytes) -> bytes:
        raise AssertionError("there is nothing to parse")


@pytest.mark.parametrize(
    ("document_id", "content_type", "content"),
    [
        ("edge:e", EDGE_TYPE, {"source": "ann", "target": "guild", "predicate": "member_of"}),
        ("node:ann", NODE_TYPE, {"label": "Ann Lee"}),
    ],
)
async def test_what_has_no_text_needs_no_parser(
    bench: Bench, document_id: str, content_type: str, content: dict[str, str]
) -> None:
    parsers = Parsers(NoSandbox(), 1, max_metadata_bytes=1_000)  # type: ignore[arg-type]
    document = DocumentUpsert(
        key=DocumentKey("default", document_id), content=msgspec.json.encode(content), content_type=content_type
    )
    decoded = DecodedEvent.from_record(upsert(0), document, Choices({"default": SEMANTIC}))
    prepared = await Preparer(parsers, bench.encoding, ChunkingParameters()).prepare(decoded)
    assert (prepared.revision, prepared.chunked.passages) == (decoded.revision, ())
    assert len(prepared.nodes) + len(prepared.relations) == 1


async def test_by_meaning_a_chunk_ends_where_the_vectors_of_sentences_part(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def by_subject(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray([[1, 0] if "Rhine" in text else [0, 1] for text in texts], np.float32)

    monkeypatch.setattr(bench.encoder, "encode", by_subject)
    preparer = Preparer(ReaderHere(), bench.encoding, ChunkingParameters())
    made = await preparer.prepare(event(TEXT, SEMANTIC))
    river, bread = (chunk.text for chunk in made.chunked.chunks)
    assert river.endswith("North Sea.")
    assert bread.startswith("The bread is baked")
    usual = await preparer.prepare(event(TEXT, None))
    assert [chunk.text for chunk in usual.chunked.chunks] == [TEXT]
    assert made.revision != usual.revision
    assert await preparer.prepare(event(TEXT, SEMANTIC)) == made, "a replay makes the same"


async def test_where_nothing_is_to_be_extracted_only_names_and_statements_are_missing(bench: Bench) -> None:
    preparer = Preparer(ReaderHere(), bench.encoding, ChunkingParameters())
    text = f"{TEXT} Owner: Ann Banks. See [the bread](bread.md)."
    usual, plain = [await preparer.prepare(event(text, None, extractor)) for extractor in (None, NO_EXTRACTOR)]
    assert usual.mentions
    assert usual.statements
    assert not plain.mentions + plain.statements
    assert plain.revision != usual.revision, "documents that are sent again are made again"
    rest = {"mentions": (), "statements": (), "revision": ""}
    assert msgspec.structs.replace(plain, **rest) == msgspec.structs.replace(usual, **rest)


async def test_a_sentence_without_a_vector_refuses_its_document(bench: Bench) -> None:
    preparer = Preparer(ReaderHere(), bench.encoding, ChunkingParameters())
    with pytest.raises(WithoutVector, match="sentences got no vector") as caught:
        await preparer.prepare(event("All is well. There is poison in it.", SEMANTIC))
    assert caught.value.reason == "embedding_failed"
