"""Searches whose steps run where they are awaited find what those find whose steps run in threads."""

import asyncio
import threading
from concurrent.futures import Executor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from query_api.channels.question import question_of
from query_api.reading.snapshot import Candidate
from query_api.searching.following import Following
from query_api.searching.steps import SHORT_PAGE, SHORT_QUESTION, Account, Reading, SearchSettings
from schemas.search_request import SearchRequest
from tests.unit.query_api.in_memory_text import world
from tests.unit.query_api.searching.asking import PAGES, QUESTION, ask


@pytest.mark.parametrize("mode", ["hybrid", "vector", "keyword", "structured", "graph", "rerank"])
async def test_the_same_is_found_in_every_mode(executor: Executor, mode: str) -> None:
    snapshot, text, words = world(PAGES)
    in_threads = await ask((snapshot, text, words), executor, mode=mode)
    here = await ask((replace(snapshot, at_hand=True), text, words), executor, mode=mode)
    assert here.hits == in_threads.hits
    assert here.stages.keys() == in_threads.stages.keys()


@pytest.mark.parametrize(
    ("q", "k", "here"),
    [(QUESTION, 10, True), (QUESTION, SHORT_PAGE + 1, False), (f"{QUESTION} " * (SHORT_QUESTION // 30), 10, False)],
)
async def test_only_what_is_little_is_done_in_the_thread_of_the_event_loop(
    executor: Executor, q: str, k: int, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, text, words = world(PAGES)
    seen: list[bool] = []
    search = text.keyword_search

    def spied(*asked: object) -> object:
        seen.append(threading.current_thread() is threading.main_thread())
        return search(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(text, "keyword_search", spied)
    await ask((replace(snapshot, at_hand=True), text, words), executor, q=q, k=k)
    assert set(seen) == {here}


async def test_nothing_more_is_made_ahead_once_the_vectors_are_there(executor: Executor) -> None:
    """Guesses would stand in the way of the first hit; what was guessed does not change what is found."""
    snapshot, text, words = world(PAGES)
    reading = Reading.of(SearchRequest(q=QUESTION), snapshot, words, executor, SearchSettings())
    follows = Following(reading, question_of(QUESTION), Account())
    for waiting in (False, True):
        keyword = [Candidate(PAGES[0].passage_ids()[0], 1.0, PAGES[0].key)]
        channels: Any = SimpleNamespace(keyword=keyword, question_vector=None, vectors_awaited=waiting)
        follows.read_ahead(channels)
        [ahead] = [task for task in asyncio.all_tasks() if task.get_name() == "ahead"]
        await ahead
        assert bool(text.calls["passages"]) == waiting


async def test_where_all_is_at_hand_nothing_is_made_ahead(executor: Executor) -> None:
    """Vectors in memory are looked through sooner than a parent is read."""
    snapshot, _, words = world(PAGES)
    reading = Reading.of(SearchRequest(q=QUESTION), replace(snapshot, at_hand=True), words, executor, SearchSettings())
    channels: Any = SimpleNamespace(keyword=[], question_vector=None, vectors_awaited=True)
    Following(reading, question_of(QUESTION), Account()).read_ahead(channels)
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "ahead"]
