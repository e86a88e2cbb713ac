"""How questions are classified, and what is searched for them first."""

import pytest

from query_api.research.plan import kind_of, plan_for


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What is a tide?", "definition"),
        ("Who was Ann Bell?", "definition"),
        ("What is the place of birth of Ann Bell?", "fact"),
        ("Who directed Alpha Film?", "fact"),
        ("Compare Raft and Paxos", "comparison"),
        ("List the planets with rings", "list"),
        ("What are the ports of Elba?", "list"),
        ("How is Ann Bell related to Ben Marsh?", "path"),
        ("When was the bridge opened?", "temporal"),
        ("Ann Bell was born in Leeds.", "claim"),
        ("Marsh does not use Delta.", "claim"),
        ("river level", "fact"),  # no verb
        ("the of and", "fact"),
        ("Der Fluss ist heute sehr tief.", "fact"),
    ],
)
def test_kind_of_question(question: str, kind: str) -> None:
    assert kind_of(question) == kind


def test_what_is_compared_is_searched_thing_by_thing() -> None:
    question = "Compare Venice and Amsterdam by their canals"
    assert plan_for(question).questions == ("Venice their canals", "Amsterdam their canals", question)


def test_questions_asked_together_are_searched_one_by_one() -> None:
    assert plan_for("Who built the mill, and when was the bridge opened?").questions == (
        "Who built the mill",
        "when was the bridge opened?",
    )
