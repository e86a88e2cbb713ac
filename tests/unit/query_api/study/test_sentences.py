"""Which sentences are understood without those around them."""

import pytest

from query_api.study.sentences import is_self_contained


@pytest.mark.parametrize(
    "sentence",
    [
        "Lisbon is the capital of Portugal and lies on the river Tagus.",
        "A sourdough starter is a culture of wild yeast and bacteria.",
        'Ada Lovelace wrote "Notes" and signed it with her initials!',
        "The Primitives are an English indie pop band from Coventry.",
    ],
)
def test_a_whole_sentence_that_says_what_it_is_about_is_self_contained(sentence: str) -> None:
    assert is_self_contained(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "It is the capital of Portugal and lies on the river Tagus.",
        "However, Lisbon is the capital of Portugal and lies on the Tagus.",
        "Lisbon is larger than this town, which has seven hills.",
        "In our view Lisbon is the finest capital of the whole south.",
        "Lisbon is also the capital of Portugal, as shown by the table.",
        "As described above, Lisbon is the capital of all Portugal.",
        "The river flows through Lisbon and then on into the sea.",
        "Lisbon, capital of Portugal and port on the river Tagus",
        "Status: Lisbon is the capital of Portugal since the year 1255.",
        "- Lisbon is the capital of Portugal and lies on the Tagus.",
        "1. Lisbon is the capital of Portugal and lies on the Tagus.",
        "Call lisbon.open() before you ask for the capital of Portugal.",
        "Lisbon | Portugal | 1255 | the capital since then and now.",
        "See https://lisbon.example for the capital of all Portugal.",
        "Lisbon (the capital of Portugal lies on the river Tagus.",
        "Lisbon is old.",
        " ".join(["Lisbon is old and"] * 20) + " large.",
        "Colours of Lisbon have an id. Portugal uses them by value only.",
    ],
)
def test_what_points_elsewhere_or_is_no_prose_does_not(sentence: str) -> None:
    assert not is_self_contained(sentence)
