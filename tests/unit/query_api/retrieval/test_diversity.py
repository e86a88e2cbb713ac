"""How many hits may have something in common."""

from query_api.retrieval.diversity import Limit, at_most
from schemas.ids import DocumentKey

AUTHORS = {"a": ("ann",), "b": ("ann", "bo"), "c": ("bo",), "d": ("ann",), "e": ()}
PER_AUTHOR = Limit(2, lambda key: AUTHORS[key.document_id])


def kept(order: str, *limits: Limit, first: int | None = None) -> str:
    return "".join(at_most(limits, order, lambda name: DocumentKey("c", name), first))


def test_the_first_of_those_that_share_a_value_stay() -> None:
    assert kept("abcd", PER_AUTHOR) == "abc"
    assert kept("dcba", PER_AUTHOR) == "dcb"


def test_what_was_left_out_takes_no_room_from_others() -> None:
    """b would be the second of Bo, and the third of Ann: it goes, so c and its like stay two."""
    assert kept("adbcc", PER_AUTHOR) == "adcc"


def test_what_has_no_value_is_not_limited() -> None:
    assert kept("eeee", PER_AUTHOR) == "eeee"


def test_every_limit_counts() -> None:
    assert kept("aabbcce", PER_AUTHOR, Limit.per_document(1)) == "abce"


def test_the_beginning_is_that_of_the_whole() -> None:
    whole = kept("abcdeabcde", PER_AUTHOR)
    assert [kept("abcdeabcde", PER_AUTHOR, first=first) for first in range(1, 6)] == [
        whole[:first] for first in range(1, 6)
    ]
    assert kept("abc") == "abc"
