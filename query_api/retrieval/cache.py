"""The result cache: answers by question and snapshot, so none is ever stale."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

import msgspec
from cachetools import TTLCache

from query_api.index.search_snapshot import Snapshot
from schemas.api import CacheStatistics
from schemas.curation import LinkingChoice
from schemas.frames import Done, Meta, SearchFrame
from schemas.hits import Hit
from schemas.ids import digest
from schemas.search import SearchRequest

CACHE_ENTRIES = 100
CACHE_SECONDS = 300.0
CACHE_BYTES = 32 * 1024 * 1024
HIT_BYTES = 5_500  # what a hit takes beside its JSON's length: 2.7 kB of JSON are 8.2 kB of objects
PASSAGE_BYTES = 3_400  # likewise each further passage of its document
ANSWER_PARAMETERS = frozenset({"answer", "answer_form", "answer_sentences", "answer_words", "facets"})
PAGE_PARAMETERS = frozenset({"k", "offset", "cursor", "after", "wait_seconds", "cache"})


class SnapshotIdentity(NamedTuple):
    """Two snapshots of one identity give the same answers: text and graph are functions of the first four."""

    generation: str
    graph_position: int
    text_offset: int
    table_versions: tuple[tuple[str, int], ...]
    linking: frozenset[tuple[str, LinkingChoice]] = frozenset()
    communities: str = ""
    aliases: str = ""


class AnswerKey(NamedTuple):
    """What decides an answer down to its last hit; `day`, in UTC, is what `yesterday` is relative to."""

    snapshot: SnapshotIdentity
    question: str
    offset: int
    k: int
    day: date


def snapshot_identity(snapshot: "Snapshot") -> SnapshotIdentity:
    versions = tuple(sorted(snapshot.text.table_versions.items()))
    linking = frozenset(snapshot.linking.items())
    communities = "" if snapshot.communities is None else snapshot.communities.name
    aliases = snapshot.curation.aliases_digest
    return SnapshotIdentity(
        snapshot.generation, snapshot.graph.position, snapshot.text.offset, versions, linking, communities, aliases
    )


def question_digest(request: SearchRequest) -> str:
    """A digest of what in a request decides the order of its hits, so of all but page, freshness and answer."""
    question = request.model_dump(mode="json", exclude={*ANSWER_PARAMETERS, *PAGE_PARAMETERS})
    return digest("question", msgspec.json.encode(question, order="deterministic").decode())[:32]


def answer_key(request: SearchRequest, snapshot: "Snapshot") -> AnswerKey:
    """`request` has its offset, not a cursor."""
    question = " ".join(
        [question_digest(request), *(str(getattr(request, name)) for name in sorted(ANSWER_PARAMETERS))]
    )
    return AnswerKey(snapshot_identity(snapshot), question, request.offset, request.k, datetime.now(UTC).date())


class _Answers(TTLCache[AnswerKey, tuple[tuple[SearchFrame, ...], int]]):
    """The answers by size in bytes; counts those that had to make room."""

    evictions = 0

    def popitem(self) -> tuple[AnswerKey, tuple[tuple[SearchFrame, ...], int]]:
        self.evictions += 1
        return super().popitem()


class ResultCache:
    """The frames of whole answers, bounded by number, age and size. On the event loop only. An answer that lacks a
    failed channel must not be put in."""

    def __init__(
        self, entries: int, seconds: float, max_bytes: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_entries = entries
        self._seconds = seconds
        self._answers = _Answers(max_bytes, seconds, clock, getsizeof=lambda answer: answer[1])
        self._hits = 0
        self._misses = 0

    def get(self, key: AnswerKey) -> tuple[SearchFrame, ...] | None:
        found = self._answers.get(key)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        return found[0]

    def put(self, key: AnswerKey, frames: Sequence[SearchFrame]) -> None:
        """Keep an answer, unless it alone is larger than all may be."""
        if not self._max_entries:
            return
        size = sum(_memory_bytes(frame) for frame in frames)
        if size > self._answers.maxsize:
            return
        while key not in self._answers and len(self._answers) >= self._max_entries:
            self._answers.popitem()
        self._answers[key] = (tuple(frames), size)

    def prune(self) -> None:
        """Give back the memory of answers that are too old, also where no search comes any more."""
        self._answers.expire()

    def clear(self) -> int:
        """Remove all answers; returns how many there were."""
        self._answers.expire()
        count, evictions = len(self._answers), self._answers.evictions
        self._answers.clear()
        self._answers.evictions = evictions
        return count

    def statistics(self) -> CacheStatistics:
        self._answers.expire()
        return CacheStatistics(
            entries=len(self._answers),
            max_entries=self._max_entries,
            bytes=int(self._answers.currsize),
            max_bytes=int(self._answers.maxsize),
            max_age_seconds=self._seconds,
            hits=self._hits,
            misses=self._misses,
            evictions=self._answers.evictions,
        )


def _memory_bytes(frame: SearchFrame) -> int:
    objects = HIT_BYTES + PASSAGE_BYTES * len(frame.passages) if isinstance(frame, Hit) else 0
    return len(frame.model_dump_json(by_alias=True)) + objects


async def replay_answer(frames: Sequence[SearchFrame], retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
    """The frames of a cached answer under another retrieval's id, marked as cached, without the timings of its
    stages."""
    for frame in frames:
        match frame:
            case Meta():
                yield frame.model_copy(update={"retrieval_id": retrieval_id, "cached": True})
            case Done():
                yield frame.model_copy(
                    update={"retrieval_id": retrieval_id, "timings": {}, "next_cursor": None, "notes": []}
                )
            case _:
                yield frame
