"""What collections have chosen, folded from the curation topic."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import NO_EXTRACTOR
from indexer.linking import LinkingRules
from streams.indexing.settings_reader import CollectionSettings
from streams.kafka.records import SourceRecord
from streams.runtime.retry import Retrier
from tests.support.fakes.worker import NAMES, Bench

DEFAULTS = ChunkingParameters()


@dataclass
class CurationInMemory:
    """The topic; `read` is how far it was given away, `judged` outlives a restart as the group's offset does."""

    records: list[SourceRecord] = field(default_factory=list)
    read: int = 0
    judged: int = 0
    failures: int = 0

    def state(self, key: str, value: bytes | None) -> None:
        self.records.append(SourceRecord(0, len(self.records), 1_000, key.encode(), value))

    async def new_records(self) -> list[SourceRecord]:
        if self.failures:
            self.failures -= 1
            raise OSError("the broker is away")
        fresh, self.read = self.records[self.read :], len(self.records)
        return fresh

    async def checked_offset(self) -> int:
        return self.judged

    async def store_checked_offset(self, offset: int) -> None:
        self.judged = offset


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def settings_on(curation: CurationInMemory, bench: Bench) -> CollectionSettings:
    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    return CollectionSettings(NAMES.curation, curation, bench.producer, DEFAULTS, retrier)


async def test_the_newest_choice_counts_and_null_goes_back_to_the_defaults(bench: Bench) -> None:
    curation = CurationInMemory()
    settings = settings_on(curation, bench)
    assert await settings.current() == {}
    curation.state("a/settings/chunking", b'{"child_characters": 200}')
    curation.state("a/settings/chunking", b'{"method": "semantic"}')
    curation.state("b/settings/chunking", b'{"parent_overlap": 0}')
    curation.state("a/nodes/rhine", b"an edit of the graph, which is another reader's")
    assert settings.known == {}, "nothing is known before it is asked for"
    now = await settings.current()
    assert (now["a"].method, now["a"].chunk_characters, now["b"].passage_overlap) == ("semantic", 300, 0)
    curation.state("a/settings/chunking", None)
    assert set(await settings.current()) == {"b"} == set(settings.known)


async def test_linking_is_chosen_beside_chunking(bench: Bench) -> None:
    curation = CurationInMemory()
    settings = settings_on(curation, bench)
    curation.state("a/settings/linking", b'{"similar_above": 0.5}')
    assert await settings.current() == {}
    assert settings.linking_of("a") == LinkingRules(similar_above=0.5)
    assert settings.linking_of("b") == LinkingRules()
    curation.state("a/settings/linking", None)
    await settings.current()
    assert settings.linking_of("a") == LinkingRules()


async def test_an_order_is_open_until_it_is_done_also_after_a_restart(bench: Bench) -> None:
    curation = CurationInMemory()
    curation.state("a/relink/1", b'{"state": "ordered"}')
    curation.state("a/relink/1", b'{"state": "running", "documents": 3, "of": 9}')
    curation.state("b/relink/2", b'{"state": "ordered"}')
    curation.state("b/relink/2", b'{"state": "done"}')
    curation.state("b/relink/3", b'{"state": "ordered"}')
    curation.state("b/relink/3", None)
    settings = settings_on(curation, bench)
    assert settings.orders == {}
    await settings.current()
    assert list(settings.orders) == [b"a/relink/1"]


async def test_what_is_chosen_as_the_default_is_no_choice(bench: Bench) -> None:
    curation = CurationInMemory()
    curation.state("a/settings/chunking", b'{"child_characters": 300, "method": "sentences"}')
    assert await settings_on(curation, bench).current() == {}


async def test_a_malformed_setting_is_a_dead_letter_once_and_changes_nothing(bench: Bench) -> None:
    curation = CurationInMemory()
    curation.state("a/settings/chunking", b'{"method": "semantic"}')
    curation.state("a/settings/chunking", b"{")
    curation.state("a/settings/chunking", b'{"child_characters": 1000}')
    curation.state("a/settings/colour", b"{}")
    for _ in range(2):  # a start, and a restart
        curation.read = 0
        now = await settings_on(curation, bench).current()
        assert now["a"].method == "semantic"
    reasons = [letter["thalweg.reason"] for letter in bench.broker.letters()]
    assert reasons == ["not_json", "bad_setting", "unknown_setting"]
    assert bench.broker.letters()[1]["__connect.errors.topic"] == NAMES.curation
    assert "twice child_characters" in bench.broker.letters()[1]["__connect.errors.exception.message"]
    curation.state("a/settings/chunking", b"[]")
    await settings_on(curation, bench).current()
    assert len(bench.broker.letters()) == 4


async def test_a_broker_that_is_away_is_waited_for(bench: Bench) -> None:
    curation = CurationInMemory(failures=2)
    curation.state("a/settings/chunking", b'{"language": "de"}')
    assert (await settings_on(curation, bench).current())["a"].language == "de"


async def test_an_edit_that_cannot_be_read_becomes_a_dead_letter_once(bench: Bench) -> None:
    curation = CurationInMemory()
    curation.state("a/node/petrel", b'{"label": "Team Petrel"}')
    curation.state("a/node/petrel", b'{"label": "?!"}')
    curation.state("a/merge/m1", b'{"entities": ["ada", "ada"]}')
    for _ in range(2):
        await settings_on(curation, bench).current()
        curation.read = 0
    assert [letter["thalweg.reason"] for letter in bench.broker.letters()] == ["wrong_type", "wrong_type"]


async def test_an_extractor_is_chosen_where_it_is_set_up_and_else_becomes_a_dead_letter(bench: Bench) -> None:
    curation = CurationInMemory()
    retrier = Retrier("kafka", (OSError,), bench.metrics, bench.progress, first_wait_seconds=0.001)
    versions = {"language_model": "language_model:m:1"}
    settings = CollectionSettings(NAMES.curation, curation, bench.producer, DEFAULTS, retrier, versions)
    curation.state("a/settings/extraction", b'{"extractor": "language_model"}')
    curation.state("b/settings/extraction", b'{"extractor": "rules"}')
    curation.state("c/settings/extraction", b'{"extractor": "none"}')
    await settings.current()
    assert settings.extractors == {"a": "language_model:m:1", "c": NO_EXTRACTOR}
    curation.state("c/settings/extraction", None)
    curation.state("a/settings/extraction", b'{"extractor": "spacy"}')
    await settings.current()
    assert settings.extractors == {}
    (letter,) = bench.broker.letters()
    assert letter["thalweg.reason"] == "bad_setting"
    curation.state("a/settings/extraction", b'{"extractor": "language_model"}')
    curation.state("a/settings/extraction", None)
    await settings.current()
    assert settings.extractors == {}
