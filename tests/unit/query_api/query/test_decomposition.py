"""Sentences that ask two things, and those that only look so."""

import pytest

from query_api.query.analysis import parts_of
from query_api.query.decomposition import question_clauses


@pytest.mark.parametrize(
    ("question", "clauses"),
    [
        ("When was Ada Ek born, and how tall is Bo Lee?", ["When was Ada Ek born", "how tall is Bo Lee?"]),
        ("What is a weir and who wrote Faust?", ["What is a weir", "who wrote Faust?"]),
        ("who wrote hamlet and what is the capital of peru", ["who wrote hamlet", "what is the capital of peru"]),
        ("who wrote hamlet and who wrote faust", ["who wrote hamlet", "who wrote faust"]),
        ("Who wrote Hamlet; where is Basel?", ["Who wrote Hamlet", "where is Basel?"]),
        ("Is Basel on the Rhine and is the Mosel longer?", ["Is Basel on the Rhine", "is the Mosel longer?"]),
        ("Who wrote Faust, and did Goethe meet Napoleon?", ["Who wrote Faust", "did Goethe meet Napoleon?"]),
        ("Tell me what a weir is and how a dam works.", ["Tell me what a weir is", "how a dam works."]),
        ("How many lakes are in Malta and how many people live in Basel?",
         ["How many lakes are in Malta", "how many people live in Basel?"]),
        ("In which year was Faust printed, and in what city does Bo Lee live?",
         ["In which year was Faust printed", "in what city does Bo Lee live?"]),
        ("What is a weir and who wrote Faust and where is Basel?",
         ["What is a weir", "who wrote Faust", "where is Basel?"]),
        ("Which film won the prize and who directed Alpha?", ["Which film won the prize", "who directed Alpha?"]),
        ("Who is the actor who played Hamlet, and when was Faust written?",
         ["Who is the actor who played Hamlet", "when was Faust written?"]),
        ("Who designed the Alpha bridge, and who installed the lamps?",
         ["Who designed the Alpha bridge", "who installed the lamps?"]),
        ("Who designed Alpha, and who installed Beta?", ["Who designed Alpha", "who installed Beta?"]),
        ("Who wrote Alpha and who directed Beta?", ["Who wrote Alpha", "who directed Beta?"]),
        ("When was Alpha built, and when was the bridge opened?",
         ["When was Alpha built", "when was the bridge opened?"]),
        ("Where is Alpha and where did the lamps come from?", ["Where is Alpha", "where did the lamps come from?"]),
        ("When was Ada Ek born and how tall is her brother Bo?",
         ["When was Ada Ek born", "how tall is her brother Bo?"]),
    ],
)  # fmt: skip
def test_coordinated_questions_are_parts(question: str, clauses: list[str]) -> None:
    assert question_clauses(question) == clauses
    assert parts_of(question) == tuple(clauses)


@pytest.mark.parametrize(
    "question",
    [
        "Who wrote and directed Alpha Film?",
        "Who is the director of the film that was produced and distributed by Beta?",
        "Who wrote Romeo and Juliet?",
        "Who directed and who produced Alpha Film?",
        "When and where was Ada Ek born?",
        "In what year and in which city was Ada Ek born?",
        "How long and how wide is the Rhine?",
        "Who is the actor who was born in Basel and who played Hamlet?",
        "Who was the writer of Alpha and who died in 2007?",
        "Who was the writer of Alpha, and who died in 2007?",
        "Who wrote Alpha and who died in 2007?",
        "Who is the man who wrote Alpha and who died in Basel?",
        "Who is the man who wrote Alpha, and who died in Basel?",
        "the man who wrote Alpha and who died in Basel",
        "Who designed the Alpha bridge, and who installed it?",
        "Which river flows through Basel, and which ends in a sea?",
        "Which river flows through Basel and is 1,230 km long?",
        "Who led the army and was the first king of Malta?",
        "Who wrote Alpha and when?",
        "Who directed Alpha Film and when was it released?",
        "What is the town where Ada Ek was born and where she died?",
        "Who wrote Where the Wild Things Are and What Do People Do All Day?",
        'Who sang "Who are you and what is love" in Basel?',
        "weirs and dams and what holds them",
        "Ada Ek wrote Alpha and who knows what else",
        "What holds water and sand?",
        "If a weir breaks, what happens?",
    ],
)
def test_what_is_one_question_stays_one(question: str) -> None:
    assert question_clauses(question) == [question]
    assert parts_of(question) == ()


def test_no_sentence_takes_long() -> None:
    for sentence in ("and who " * 1_200, "what is a and " * 700, '" and who is b ' * 700, "; " * 5_000):
        question_clauses(sentence[:10_000])
