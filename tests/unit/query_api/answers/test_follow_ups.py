"""What continues a conversation is searched with its subject; what is complete is searched as asked."""

import pytest

from query_api.answers.follow_ups import MEMORY, complete_question, is_complete
from schemas.openai_protocol import Message


def said(*texts: str) -> list[Message]:
    """Questions, each answered."""
    return [
        message
        for text in texts
        for message in (Message(role="user", content=text), Message(role="assistant", content="It is so [1](Zug)."))
    ]


@pytest.mark.parametrize(
    ("before", "question", "searched"),
    [
        (["Who wrote PEP 8?"], "When did he write it?", "When did he write it? wrote PEP 8"),
        (["How high is the Elbe in summer?"], "and in winter?", "and in winter? high Elbe summer"),
        (["How high is the Elbe in summer?"], "What about Dresden?", "What about Dresden? high Elbe summer"),
        (["Who founded the University of Leeds?"], "its motto?", "its motto? founded University of Leeds"),
        (["Who is the mayor of Leeds?"], "in Dresden?", "in Dresden? mayor Leeds"),
        (["What is Kafka?", "Who maintains it?"], "and why?", "and why? Kafka maintains"),
        (["What is Kafka?", "Who maintains it?"], "Where do they live?", "Where do they live? Kafka maintains"),
        (
            ["What is Pompeii?"],
            "How many people lived there in AD 79?",
            "How many people lived there in AD 79? Pompeii",
        ),
        (
            ["Where is Baikal?"],
            "Which seal lives only in that lake of Siberia?",
            "Which seal lives only in that lake of Siberia? Baikal",
        ),
        (["When did the Titanic sink?"], "How many people died?", "How many people died? Titanic sink"),
        (["What is mercury?"], "What is the melting point?", "What is the melting point? mercury"),
        (["What is mercury?"], "What is needed?", "What is needed? mercury"),
        (["the opening hours of the town library"], "on Sundays", "on Sundays opening hours town library"),
    ],
)
def test_a_follow_up_carries_its_subject(before: list[str], question: str, searched: str) -> None:
    assert complete_question(question, said(*before)) == searched


@pytest.mark.parametrize(
    "question",
    [
        "What is Kafka?",
        "Who wrote PEP 8?",
        "Who wrote the proposal that replaced PEP 102?",
        "What did Ada Lovelace write, and when was she born?",
        "Is there a bridge over the Elbe at Dresden?",
        "how long may library members keep borrowed books",
        "What happened in Germany this year?",
        "In which year was Kafka born?",
        "What is a sentinel?",
        "What is photosynthesis?",
        "What do penguins eat?",
        "How large may a document be?",
        "What is the maximum line length?",
        "Are there penguins in warm waters that cannot fly?",
        "Which proposal says that there are no semicolons in good style?",
    ],
)
def test_a_complete_question_is_left_as_it_is(question: str) -> None:
    assert is_complete(question)
    assert complete_question(question, said("How high is the Rhine?")) == question


def test_a_subject_is_taken_from_the_last_question_that_is_complete() -> None:
    before = said("How high is the Rhine at Cologne?", "Who wrote PEP 8?")
    assert complete_question("and why?", before) == "and why? wrote PEP 8"


def test_memory_ends_after_six_messages() -> None:
    assert MEMORY == 6
    before = said("How high is the Rhine?", "and now?", "and then?", "and later?")
    assert "Rhine" not in complete_question("and in winter?", before)
    assert "Rhine" in complete_question("and in winter?", before[:-2])


def test_what_the_service_or_a_system_said_is_not_added() -> None:
    before = [Message(role="system", content="You are Hal 9000."), *said("Who wrote PEP 8?")]
    assert complete_question("and why?", before) == "and why? wrote PEP 8"
    assert complete_question("and why?", before[:1]) == "and why?"


def test_a_long_conversation_stays_a_question_that_can_be_asked() -> None:
    assert len(complete_question("and why?", said(" ".join(f"Name{number}" for number in range(60))))) < 250
    before = said("x" * 9_000)
    assert complete_question("it " + "y" * 9_990, before) == "it " + "y" * 9_990
