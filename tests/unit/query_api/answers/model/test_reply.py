"""What a model writes is read sentence by sentence, in whatever pieces it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.answers.model.reply import Claim, ReplyReader


def read(text: str, size: int = 3) -> list[Claim]:
    reader = ReplyReader()
    claims = [claim for at in range(0, len(text), size) for claim in reader.add(text[at : at + size])]
    return [*claims, *reader.end()]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("text", "claims"),
    [
        (
            "Ada was born in 1815. [1]\nShe died in 1852 [2].",
            [("Ada was born in 1815.", [1]), ("She died in 1852.", [2])],
        ),
        ("One is odd [1]. Two is even [2][3]. ", [("One is odd.", [1]), ("Two is even.", [2, 3])]),
        ("Ada [1] met Bo [2].", [("Ada met Bo.", [1, 2])]),
        ("- **Ada** met Bo [1, 2]", [("Ada met Bo", [1, 2])]),
        ("1. Ada met Bo 【2】", [("Ada met Bo", [2])]),
        ("Ada met Bo [Passage 2].", [("Ada met Bo.", [2])]),
        ("Ada met Bo. Bo ran [1].", [("Ada met Bo.", [1]), ("Bo ran.", [1])]),
        ("Here it is:\nAda ran [1]\nIt is so.", [("Ada ran", [1]), ("It is so.", [])]),
        ("<think>Is it [1]? Hm [2].\n</think>\n\nAda ran [3].", [("Ada ran.", [3])]),
        ("<think>for ever [1]. And ever [2].", []),
        ("a ‹ b [1]", [("a < b", [1])]),
        ("Ada\u202e ran\u200b [1]", [("Ada ran", [1])]),
        ("It is [99].", [("It is.", [99])]),
        ("", []),
    ],
)
def test_sentences_and_their_numbers(text: str, claims: list[tuple[str, list[int]]], size: int) -> None:
    assert read(text, size) == [Claim(*each) for each in claims]


@pytest.mark.parametrize("text", ["NOTHING", "Nothing.", "<think>well</think>NOTHING", "**NOTHING**\n"])
def test_that_nothing_answers_is_understood(text: str) -> None:
    assert [claim.is_nothing for claim in read(text)] == [True]


@pytest.mark.parametrize(
    ("text", "is_usable"), [("It is so.", False), ("It is so [1].", True), ("NOTHING", True), ("", False)]
)
def test_a_reply_that_names_no_passage_is_not_usable(text: str, is_usable: bool) -> None:
    reader = ReplyReader()
    assert list(reader.add(text)) + list(reader.end()) == read(text, 1000)
    assert reader.is_usable is is_usable


@given(st.text(alphabet=" \n[]【】<>/.,abcT‹1234think", max_size=80), st.integers(1, 9))
def test_pieces_make_no_difference(text: str, size: int) -> None:
    assert read(text, size) == read(text, 1000)
