"""What collections have chosen, folded from the curation topic."""

from collections.abc import Iterator

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import NO_EXTRACTOR
from indexer.linking import LinkingRules
from streams.indexing.document_steps import Choices
from streams.indexing.settings_reader import CollectionChoices, CollectionSettings
from streams.runtime.retry import Retrier
from tests.support.fakes.in_memory_log import InMemoryLog
from tests.support.fakes.worker import NAMES, Bench

DEFAULTS = ChunkingParameters()


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def settings_on(curation: InMemoryLog, bench: Bench) -> CollectionSettings:
    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    return CollectionSettings(NAMES.curation, curation, bench.producer, CollectionChoices(DEFAULTS), retrier)


async def test_the_newest_choice_counts_and_null_goes_back_to_the_defaults(bench: Bench) -> None:
    curation = InMemoryLog()
    settings = settings_on(curation, bench)
    assert await settings.current() == Choices()
    curation.append("a/settings/chunking", b'{"child_characters": 200}')
    curation.append("a/settings/chunking", b'{"method": "semantic"}')
    curation.append("b/settings/chunking", b'{"parent_overlap": 0}')
    curation.append("a/nodes/rhine", b"an edit of the graph, which is another reader's")
    assert settings.known == Choices(), "nothing is known before it is asked for"
    now = (await settings.current()).chunking
    assert (now["a"].method, now["a"].chunk_characters, now["b"].passage_overlap) == ("semantic", 300, 0)
    curation.append("a/settings/chunking", None)
    assert set((await settings.current()).chunking) == {"b"}


async def test_linking_is_chosen_beside_chunking(bench: Bench) -> None:
    curation = InMemoryLog()
    settings = settings_on(curation, bench)
    curation.append("a/settings/linking", b'{"similar_above": 0.5}')
    assert await settings.current() == Choices()
    assert settings.linking_of("a") == LinkingRules(similar_above=0.5)
    assert settings.linking_of("b") == LinkingRules()
    curation.append("a/settings/linking", None)
    await settings.current()
    assert settings.linking_of("a") == LinkingRules()


async def test_an_order_is_open_until_it_is_done_also_after_a_restart(bench: Bench) -> None:
    curation = InMemoryLog()
    curation.append("a/relink/1", b'{"state": "ordered"}')
    curation.append("a/relink/1", b'{"state": "running", "documents": 3, "of": 9}')
    curation.append("b/relink/2", b'{"state": "ordered"}')
    curation.append("b/relink/2", b'{"state": "done"}')
    curation.append("b/relink/3", b'{"state": "ordered"}')
    curation.append("b/relink/3", None)
    settings = settings_on(curation, bench)
    assert settings.orders == {}
    await settings.current()
    assert list(settings.orders) == [b"a/relink/1"]


async def test_what_is_chosen_as_the_default_is_no_choice(bench: Bench) -> None:
    curation = InMemoryLog()
    curation.append("a/settings/chunking", b'{"child_characters": 300, "method": "sentences"}')
    assert await settings_on(curation, bench).current() == Choices()


async def test_a_malformed_setting_is_a_dead_letter_once_and_changes_nothing(bench: Bench) -> None:
    curation = InMemoryLog()
    curation.append("a/settings/chunking", b'{"method": "semantic"}')
    curation.append("a/settings/chunking", b"{")
    curation.append("a/settings/chunking", b'{"child_characters": 1000}')
    curation.append("a/settings/colour", b"{}")
    for _ in range(2):  # a start, and a restart
        curation.read = 0
        now = (await settings_on(curation, bench).current()).chunking
        assert now["a"].method == "semantic"
    reasons = [letter["thalweg.reason"] for letter in bench.broker.letters()]
    assert reasons == ["not_json", "bad_setting", "unknown_setting"]
    assert bench.broker.letters()[1]["__connect.errors.topic"] == NAMES.curation
    assert "twice child_characters" in bench.broker.letters()[1]["__connect.errors.exception.message"]
    curation.append("a/settings/chunking", b"[]")
    await settings_on(curation, bench).current()
    assert len(bench.broker.letters()) == 4


async def test_a_broker_that_is_away_is_waited_for(bench: Bench) -> None:
    curation = InMemoryLog(failures=2)
    curation.append("a/settings/chunking", b'{"language": "de"}')
    assert (await settings_on(curation, bench).current()).chunking["a"].language == "de"


async def test_an_edit_that_cannot_be_read_becomes_a_dead_letter_once(bench: Bench) -> None:
    curation = InMemoryLog()
    curation.append("a/node/petrel", b'{"label": "Team Petrel"}')  # it is a document
    curation.append("a/merge/m1", b'{"entities": ["ada", "ada"]}')
    for _ in range(2):
        await settings_on(curation, bench).current()
        curation.read = 0
    assert [letter["thalweg.reason"] for letter in bench.broker.letters()] == ["bad_key", "wrong_type"]


async def test_an_extractor_is_chosen_where_it_is_set_up_and_else_becomes_a_dead_letter(bench: Bench) -> None:
    curation = InMemoryLog()
    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    versions = {"language_model": "language_model:m:1"}
    settings = CollectionSettings(
        NAMES.curation, curation, bench.producer, CollectionChoices(DEFAULTS, versions), retrier
    )
    curation.append("a/settings/extraction", b'{"extractor": "language_model"}')
    curation.append("b/settings/extraction", b'{"extractor": "rules"}')
    curation.append("c/settings/extraction", b'{"extractor": "none"}')
    await settings.current()
    assert settings.known.extractors == {"a": "language_model:m:1", "c": NO_EXTRACTOR}
    curation.append("c/settings/extraction", None)
    curation.append("a/settings/extraction", b'{"extractor": "spacy"}')
    await settings.current()
    assert settings.known.extractors == {}
    (letter,) = bench.broker.letters()
    assert letter["thalweg.reason"] == "bad_setting"
    curation.append("a/settings/extraction", b'{"extractor": "language_model"}')
    curation.append("a/settings/extraction", None)
    await settings.current()
    assert settings.known.extractors == {}
