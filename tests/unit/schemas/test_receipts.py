import pytest

from schemas.errors import MalformedToken
from schemas.receipts import Token, format_token, log_name, merge_tokens, parse_token

TOPIC = "5f3a9c1e" + "0" * 24


def test_a_token_names_its_log_by_the_first_digits_of_the_topics_id() -> None:
    token = format_token({3: 5, 0: 17}, TOPIC)
    assert token == "0:17,3:5@5f3a9c1e"
    assert parse_token(token) == Token({0: 17, 3: 5}, log_name(TOPIC))


def test_positions_alone_are_a_token_too() -> None:
    assert parse_token("3:5") == Token({3: 5}, None)
    assert format_token({3: 5}) == "3:5"
    assert format_token({}, TOPIC) == ""


@pytest.mark.parametrize("text", ["3:5@", "3:5@xyz", "3:5@5F3A9C1E", "3:5@5f3a9c1e0", "@5f3a9c1e", "3:5@5f3a9c1e@0"])
def test_what_names_no_log_is_refused(text: str) -> None:
    with pytest.raises(MalformedToken):
        parse_token(text)


def test_tokens_are_merged_at_the_highest_offset_of_each_partition() -> None:
    assert merge_tokens(["0:3,1:9", "", "0:7@5f3a9c1e"]) == Token({0: 7, 1: 9}, "5f3a9c1e")
    assert str(merge_tokens([])) == ""


def test_tokens_of_two_logs_are_not_merged() -> None:
    with pytest.raises(MalformedToken, match="another log"):
        merge_tokens(["0:3@5f3a9c1e", "0:3@00000000"])


def test_a_token_is_reached_where_each_of_its_partitions_is() -> None:
    token = Token({0: 3, 1: 9})
    assert token.is_reached({0: 3, 1: 12, 2: 0})
    assert not token.is_reached({0: 3, 1: 8})
    assert not token.is_reached({0: 3})
    assert Token({}).is_reached({})
