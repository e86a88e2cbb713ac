"""A language model behind a real HTTP server: what it is sent, and every way in which its answer can be bad."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from indexer.errors import UnusableAnswer
from indexer.extraction.extractor import AnsweredEntity, AnsweredStatement
from indexer.extraction.language_model import PROMPT_VERSION, LanguageModel, version_of
from schemas.settings import LanguageModelSettings
from tests.support.fakes.model_endpoints import (
    CUT,
    Answer,
    ChatEndpoint,
    chat_endpoint,
)

TEXT = "Team Petrel owns Beacon."
SAID = {
    "entities": [{"name": "Team Petrel", "type": "organisation", "definition": None}],
    "statements": [{"subject": "Team Petrel", "predicate": "owns", "object": "Beacon", "sentence": TEXT}],
}


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(says={"Petrel": SAID}, key="a-key") as running:
        yield running


def asked(endpoint: ChatEndpoint, **changed: Any) -> LanguageModel:
    return LanguageModel(endpoint.settings(**changed))


def test_it_is_sent_the_text_with_the_known_names_and_the_schema(endpoint: ChatEndpoint) -> None:
    answer = asked(endpoint).extract(TEXT, ["Beacon", "Team Heron"])
    assert answer.entities == [AnsweredEntity("Team Petrel", "organisation")]
    assert answer.statements == [AnsweredStatement("Team Petrel", "owns", "Beacon", TEXT)]
    (body,) = endpoint.bodies
    assert TEXT in body["messages"][1]["content"]
    assert "Beacon; Team Heron" in body["messages"][1]["content"]
    assert body["response_format"]["json_schema"]["strict"] is True
    assert endpoint.headers[0]["authorization"] == "Bearer a-key"


def test_its_version_is_of_the_model_and_of_what_it_is_asked(endpoint: ChatEndpoint) -> None:
    assert asked(endpoint).version == f"language_model:reader:{PROMPT_VERSION}"
    assert asked(endpoint).version != asked(endpoint, model="another").version
    assert asked(endpoint).version == asked(endpoint, model="reader, small").version
    assert version_of(LanguageModelSettings()) is None
    with pytest.raises(ValueError, match="an address"):
        LanguageModel(LanguageModelSettings(model="reader"))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (CUT, "a part of one"),
        (Answer(instead=b'{"choices": []}'), "empty"),
        (Answer(instead=b"x" * 10_000_000), "more than 1,048,576 bytes"),
    ],
)
def test_a_bad_response_is_named_without_a_word_of_what_it_said(
    endpoint: ChatEndpoint, bad: Answer, message: str
) -> None:
    endpoint.otherwise = bad
    with pytest.raises(UnusableAnswer, match=message) as failed:
        asked(endpoint).extract(TEXT, [])
    assert "Petrel" not in str(failed.value)
    assert "a-key" not in str(failed.value)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (lambda text: text[: len(text) // 2], "not JSON, or cut"),
        (lambda _text: "Sure! Here are the entities:", "not JSON"),
        (lambda _text: '{"entities": "Team Petrel"}', "does not fit the schema"),
        (lambda _text: '{"entities": [{"name": 5, "type": "person"}], "statements": []}', "does not fit the schema"),
        (lambda _text: '{"entities": []}', "does not fit the schema"),
        (lambda _text: None, "empty"),
    ],
)
def test_a_message_that_is_no_answer_is_refused(
    endpoint: ChatEndpoint, said: Callable[[str], str | None], message: str
) -> None:
    endpoint.said = said
    with pytest.raises(UnusableAnswer, match=message):
        asked(endpoint).extract(TEXT, [])


def test_an_answer_cut_at_the_models_limit_is_refused_even_if_it_is_json(endpoint: ChatEndpoint) -> None:
    endpoint.finish_reason = "length"
    with pytest.raises(UnusableAnswer, match="limit of tokens"):
        asked(endpoint).extract(TEXT, [])
