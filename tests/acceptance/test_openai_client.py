"""What a program that speaks OpenAI's protocol gets from a running installation, by the official client."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.support.processes.installation import Installation, installation

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
DOCUMENTS = {
    "elbe.md": "# Elbe\n\nIn summer the level of the Elbe at Dresden is about 1.2 metres.\n\n"
    "In winter the level of the Elbe at Dresden rises to about 2.5 metres.",
    "library.md": "# Town library\n\nThe library opens at nine. Members may borrow twelve books for four weeks.",
    "lovelace.md": "# Ada Lovelace\n\nAda Lovelace was born in London in 1815. She wrote the first program.",
    "zürich.md": "# Zürich\n\nDer Zürichsee ist 143 Meter tief – 🌊.",
    "bees.md": "# Bees\n\nA hive holds one queen and up to sixty thousand workers.",
}
QUESTION = "Where was Ada Lovelace born?"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    keys = {"THALWEG_SERVICE__API_KEY": KEY, "THALWEG_SERVICE__READ_API_KEY": READ_KEY}
    with installation(tmp_path_factory.mktemp("openai") / "data", **keys) as running:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "text/markdown"}
        tokens = [
            httpx.put(
                f"{running.url}/v1/documents/{name}",
                params={"collection": "town"} | ({"uri": "https://example.org/elbe"} if name == "elbe.md" else {}),
                content=text.encode(),
                headers=headers,
                timeout=30,
            ).json()["token"]
            for name, text in DOCUMENTS.items()
        ]
        for token in tokens:
            parameters: dict[str, Any] = {"q": "river", "after": token, "wait_seconds": 60}
            httpx.get(f"{running.url}/v1/search", params=parameters, headers=headers, timeout=90).raise_for_status()
        yield running


def client_of(running: Installation, key: str = READ_KEY) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key=key, max_retries=0, timeout=60)


def said(*texts: str) -> list[Any]:
    """A question of the user, an answer, a question…"""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)]


def cited(text: str, citation: Any) -> str:
    return text[citation.start_index : citation.end_index]


@pytest.mark.timeout(300)
def test_a_question_is_answered_whole_and_streamed(guarded: Installation) -> None:
    client = client_of(guarded)
    assert [model.id for model in client.models.list()] == ["thalweg"]
    message = client.chat.completions.create(model="thalweg", messages=said(QUESTION)).choices[0].message
    text = message.content or ""
    assert "Ada Lovelace was born in London in 1815." in text
    citations = [each.url_citation for each in message.annotations or []]
    assert [cited(text, each) for each in citations] == [
        f"[{number}]({each.url})" for number, each in enumerate(citations, start=1)
    ]
    assert citations[0].url.startswith(f"{guarded.url}/#/documents?id=lovelace.md&in=town&passage=")
    stream = client.chat.completions.create(model="thalweg", messages=said(QUESTION), stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == text

    async def later() -> str:
        async with openai.AsyncOpenAI(base_url=f"{guarded.url}/v1", api_key=READ_KEY) as other:
            answer = await other.chat.completions.create(model="thalweg", messages=said(QUESTION))
            return answer.choices[0].message.content or ""

    assert asyncio.run(later()) == text
    assert client.responses.create(model="thalweg", input=QUESTION).output_text == text
    with client.responses.stream(model="thalweg", input=QUESTION) as events:
        assert events.get_final_response().output_text == text


def test_a_follow_up_is_about_what_was_asked_before(guarded: Installation) -> None:
    before = "What is the level of the Elbe at Dresden in summer?"
    answer: Any = client_of(guarded).chat.completions.create(
        model="thalweg", messages=said(before, "About 1.2 metres [1].", "and in winter?")
    )
    assert answer.thalweg["query"] == "and in winter? level Elbe at Dresden summer"
    assert "rises to about 2.5 metres" in answer.choices[0].message.content
    assert answer.choices[0].message.annotations[0].url_citation.url == "https://example.org/elbe"


def test_what_documents_do_not_answer_is_refused(guarded: Installation) -> None:
    client = client_of(guarded)
    for question in ("Who won the football world cup of 1974?", "the of and"):
        answer: Any = client.chat.completions.create(model="thalweg", messages=said(question))
        assert (answer.thalweg["refused"], answer.choices[0].finish_reason) == (True, "stop")
        assert answer.choices[0].message.content


def test_text_of_other_scripts_comes_through(guarded: Installation) -> None:
    extra: Any = {"thalweg": {"collection": "town", "answer_sentences": 1}}
    answer = client_of(guarded).responses.create(model="thalweg", input="Wie tief ist der Zürichsee?", extra_body=extra)
    assert "Der Zürichsee ist 143 Meter tief – 🌊." in answer.output_text
    part: Any = answer.output[0]
    [citation] = part.content[0].annotations
    assert cited(answer.output_text, citation) == f"[1]({citation.url})"


def test_what_is_wrong_is_the_error_that_the_client_has_for_it(guarded: Installation) -> None:
    with pytest.raises(openai.AuthenticationError):
        client_of(guarded, "wrong").chat.completions.create(model="thalweg", messages=said(QUESTION))
    client = client_of(guarded)
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-5", messages=said(QUESTION))
    with pytest.raises(openai.BadRequestError, match="262,144 bytes"):
        client.chat.completions.create(model="thalweg", messages=said("x" * 1_000_000))
    with pytest.raises(openai.BadRequestError, match="of the role user"):
        client.responses.create(model="thalweg", input="   ")
