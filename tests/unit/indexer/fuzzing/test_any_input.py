"""Chance at every format's parser, in the limited child: prepared or refused with a reason, never a dead parent."""

from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import PreparationTask, decode_prepared, encode_task
from indexer.errors import UnparsableDocument
from indexer.parsing import formats
from indexer.sandbox.child import SandboxLimits
from indexer.sandbox.sandbox import Sandbox
from schemas.events import DocumentUpsert
from schemas.graph_documents import KINDS
from schemas.ids import DocumentKey
from tests.support.effort import examples, held_bytes
from tests.unit.indexer.fuzzing.mutations import SAMPLES, mutated

MOST_GROWTH_BYTES = 50 * 2**20
REASONS = {
    "media_type_mismatch", "undecodable", "malformed", "too_deep", "too_large", "unsafe", "empty_content",
    "pictures_only", "parser_limit",
}  # fmt: skip
KEY = DocumentKey("default", "any")
LIMITS = SandboxLimits(wall_seconds=280)  # judged by processor time
PARAMETERS = ChunkingParameters(passage_characters=400, chunk_characters=100, chunk_overlap=20)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox("indexer.document_pipeline:prepare_bytes", LIMITS) as opened:
        yield opened


def test_every_parser_has_samples() -> None:
    """But those of nodes and edges, whose content is checked where their events are decoded, before it is parsed."""
    parsers = {known.parser: known.media_types for known in formats() if not KINDS.keys() & set(known.media_types)}
    assert {parser for parser, types in parsers.items() if not SAMPLES.keys() & set(types)} <= {
        known.parser for known in formats() if known.media_type in SAMPLES
    }


@pytest.mark.parametrize("media_type", SAMPLES)
async def test_the_samples_themselves_are_read(media_type: str, sandbox: Sandbox) -> None:
    for content in SAMPLES[media_type]:
        assert await outcome(sandbox, media_type, content) == "prepared"


@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("media_type", SAMPLES)
async def test_any_input_is_prepared_or_refused_with_a_reason(
    media_type: str, sandbox: Sandbox, record_property: Callable[[str, object], None]
) -> None:
    await outcome(sandbox, media_type, SAMPLES[media_type][0])
    found: Counter[str] = Counter()
    contents: list[bytes] = []

    @settings(
        max_examples=examples(100, 10_000),
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        contents.append(data.draw(mutated(media_type)))

    collect()
    before = held_bytes()  # with the inputs, which are this test's own
    for content in contents:
        found[await outcome(sandbox, media_type, content)] += 1
    record_property("outcomes", dict(found))
    print(media_type, dict(found))
    assert found.keys() <= REASONS | {"prepared"}
    assert await outcome(sandbox, media_type, SAMPLES[media_type][0]) == "prepared", "after all that, too"
    assert len(found) > 1, "nothing was refused: the mutations are too kind"
    assert held_bytes() - before < MOST_GROWTH_BYTES


async def outcome(sandbox: Sandbox, media_type: str, content: bytes) -> str:
    """`prepared`, or the reason it was refused for."""
    upsert = DocumentUpsert(key=KEY, content=content, content_type=media_type)
    answer = await answer_or_refusal(sandbox, encode_task(PreparationTask(upsert, PARAMETERS)))
    if isinstance(answer, UnparsableDocument):
        assert answer.reason != "parser_failed", f"the parser broke on {content!r}: {answer}"
        assert 0 < len(str(answer)) < 300
        return answer.reason
    prepared = decode_prepared(answer)
    assert prepared.chunked.chunks
    for chunk in prepared.chunked.chunks:
        passage = prepared.chunked.passages[chunk.passage]
        assert chunk.text == passage.text[chunk.start - passage.start : chunk.end - passage.start]
    return "prepared"


async def answer_or_refusal(sandbox: Sandbox, task: bytes) -> bytes | UnparsableDocument:
    try:
        return await sandbox.run(task)
    except UnparsableDocument as refusal:
        return refusal
