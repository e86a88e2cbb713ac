"""The re-ranker behind HTTP: what it sends, what it makes of every answer, and what it never tells."""

import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from query_api.rerankers import BUDGET_SECONDS, RerankerFailure, RerankerRefused, RerankerUnavailable, TextsNotScored
from query_api.rerankers import endpoint as module
from query_api.rerankers.endpoint import EndpointReranker
from query_api.settings import RerankerSettings
from tests.support.fakes.model_endpoints import (
    CUT,
    Answer,
    RerankingEndpoint,
    Rows,
    reranking_endpoint,
)

SECRET = "sk-very-secret-0123456789"
DIARY = "my private diary"
QUESTION = "who keeps a private diary"
TEXTS = ["nothing", DIARY, "who keeps bees"]


@pytest.fixture(params=["documents", "texts"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[RerankingEndpoint]:
    with reranking_endpoint(key=SECRET, form=request.param) as running:
        yield running


@pytest.fixture
def opened() -> Iterator[Any]:
    made: list[EndpointReranker] = []

    def open_reranker(
        endpoint: RerankingEndpoint, budget_seconds: float = BUDGET_SECONDS, **changed: Any
    ) -> EndpointReranker:
        made.append(EndpointReranker(endpoint.settings(**changed), budget_seconds))
        return made[-1]

    yield open_reranker
    for reranker in made:
        reranker.close()


def test_scores_come_in_the_order_of_the_texts_in_either_form(endpoint: RerankingEndpoint, opened: Any) -> None:
    assert opened(endpoint).scores(QUESTION, TEXTS).tolist() == [0.0, 2.0, 2.0]
    [body], [headers] = endpoint.bodies, endpoint.headers
    assert headers["authorization"] == f"Bearer {SECRET}"
    if endpoint.form == "texts":
        assert body == {"query": QUESTION, "texts": TEXTS, "truncate": True}
    else:
        assert body == {"model": "reader", "query": QUESTION, "documents": TEXTS, "top_n": 3}


def test_an_endpoint_without_a_key_or_a_model_is_sent_neither(opened: Any) -> None:
    with reranking_endpoint(model=None) as endpoint:
        assert opened(endpoint).scores(QUESTION, TEXTS).tolist() == [0.0, 2.0, 2.0]
    assert "authorization" not in endpoint.headers[0]
    assert "model" not in endpoint.bodies[0]


def test_what_cannot_be_sent_is_repaired_and_of_no_text_nothing_is_asked(
    endpoint: RerankingEndpoint, opened: Any
) -> None:
    reranker = opened(endpoint)
    assert reranker.scores(QUESTION, []).shape == (0,)
    assert not endpoint.bodies
    assert reranker.scores("a lone surrogate \ud800", ["", "x" * 100_000]).shape == (2,)
    sent = endpoint.bodies[0][endpoint.form]
    assert (sent[0], len(sent[1])) == (" ", 8_000)


def _without_the_last(rows: Rows) -> Rows:
    return rows[:-1]


def _numbered_wrongly(rows: Rows) -> Rows:
    return [row | {"index": row["index"] + 1} for row in rows]


def _one_twice(rows: Rows) -> Rows:
    return [rows[0], *rows[:-1]]


def _scored(rows: Rows, value: Any) -> Rows:
    return [{name: value if name != "index" else row[name] for name in row} for row in rows]


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (CUT, RerankerUnavailable, "cut short"),
        (Answer(307, (("Location", "http://127.0.0.1:9/"),)), RerankerRefused, "no such endpoint .307"),
        (Answer(422), TextsNotScored, "THALWEG_RERANKER__FORM"),
        (Answer(change=_without_the_last), TextsNotScored, "2 scores for 3 texts"),
        (Answer(change=_numbered_wrongly), TextsNotScored, "numbered"),
        (Answer(change=_one_twice), TextsNotScored, "numbered"),
        (Answer(change=lambda rows: _scored(rows, float("nan"))), TextsNotScored, "other than scores"),
        (Answer(change=lambda rows: _scored(rows, None)), TextsNotScored, "other than scores"),
        (Answer(change=lambda rows: _scored(rows, DIARY)), TextsNotScored, "other than scores"),
    ],
)
def test_every_answer_has_one_sentence_that_holds_no_text_and_no_key(
    endpoint: RerankingEndpoint, opened: Any, answer: Answer, kind: type[RerankerFailure], says: str
) -> None:
    endpoint.otherwise = answer
    with pytest.raises(kind, match=says) as caught:
        opened(endpoint).scores(QUESTION, TEXTS)
    told = str(caught.value) + repr(caught.value) + "".join(traceback.format_exception(caught.value))
    assert DIARY not in told
    assert QUESTION not in told
    assert SECRET not in told
    assert endpoint.url in str(caught.value)


def test_a_number_without_end_is_none(opened: Any) -> None:
    results = ",".join(f'{{"index": {at}, "relevance_score": 1e999}}' for at in range(3))
    endless = Answer(instead=f'{{"results": [{results}]}}'.encode())
    with reranking_endpoint(otherwise=endless) as endpoint, pytest.raises(TextsNotScored):
        opened(endpoint).scores(QUESTION, TEXTS)


def test_an_answer_without_end_is_not_read_to_it(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ANSWER_BYTES", 1_000)
    endless = Answer(instead=b"[" * 100_000)
    with (
        reranking_endpoint(otherwise=endless) as endpoint,
        pytest.raises(TextsNotScored, match="more than 1,000 bytes"),
    ):
        opened(endpoint).scores(QUESTION, TEXTS)


def test_an_address_is_needed() -> None:
    with pytest.raises(RerankerRefused, match="THALWEG_RERANKER__BASE_URL"):
        EndpointReranker(RerankerSettings())
