"""Questions of each kind, and the parts they fall into."""

import pytest

from query_api.query.understanding import intent_of, parts_of, understood


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("Why does the lock exist?", "explain"),
        ("how does free threading work", "explain"),
        ("What is a token?", "explain"),
        ("Compare Faust and Flink", "compare"),
        ("lists vs. tuples", "compare"),
        ("Were Scott Derrickson and Ed Wood of the same age, and what is the difference?", "compare"),
        ("Who wrote PEP 8?", "find"),
        ("How many lakes are there?", "find"),
        ("list all withdrawn proposals", "find"),
        ("Give me an overview of packaging", "summarise"),
        ("How is the tariff related to the strike?", "relation"),
        ("how are the tariff and the strike related", "relation"),
        ("What should I learn before monads?", "path"),
        ("quiz me on rivers", "quiz"),
        ("soft keyword deprecation", "general"),
        ("0-dimensional biomaterials lack inductive properties.", "general"),
    ],
)
def test_a_question_has_a_kind(question: str, intent: str) -> None:
    assert intent_of(question) == intent


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Compare the Elbe with the Oder.", ("the Elbe", "the Oder")),
        ("What is the difference between a weir and a dam?", ("a weir", "a dam")),
        ("lists vs tuples", ("lists", "tuples")),
        ("lists vs. tuples vs sets?", ("lists", "tuples", "sets")),
        ("Which is faster, lists versus tuples versus sets in Python?", ("lists", "tuples", "sets in Python")),
        ("What is Faust vs Flink?", ("Faust", "Flink")),
        ("Compare weirs, dams and locks.", ("weirs", "dams", "locks")),
        ("compare weirs, dams, locks, and ferries of the Elbe", ("weirs", "dams", "locks", "ferries of the Elbe")),
        ("Compare the Elbe, the Oder and the Rhine, in terms of length", ("the Elbe", "the Oder", "the Rhine")),
        ("What are the differences between a weir, a dam, and a lock?", ("a weir", "a dam", "a lock")),
        ("How do weirs, dams and locks differ in spring?", ("weirs", "dams", "locks")),
        ("a vs b vs c vs d vs e", ()),
        ("Ada vs Bo vs Cy vs Di vs Ed", ("Ada", "Bo", "Cy", "Di")),
        ("How does a weir differ from a dam in spring?", ("a weir", "a dam in spring")),
        ("What is a weir? Who built the first one?", ("What is a weir?", "Who built the first one?")),
        ("I look for weirs of Dr. Ek. They hold water back.", ("I look for weirs of Dr. Ek.", "They hold water back.")),
        ("Where is the weir of J. R. Ek?", ()),
        ("Really? Where is the weir?", ()),
        ("soft keyword deprecation", ()),
    ],
)
def test_a_question_falls_into_parts_or_is_one_piece(question: str, parts: tuple[str, ...]) -> None:
    assert parts_of(question) == parts


def test_the_caller_knows_better_what_kind_of_question_it_is() -> None:
    assert understood("Compare Faust and Flink", "find").intent == "find"


def test_no_question_takes_long_to_read() -> None:
    for question in ("compare " * 1_200, "a vs " * 2_000, "difference between " * 500, "x. " * 3_000):
        understood(question[:10_000])
