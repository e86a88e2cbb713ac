"""Orders to skip a batch, and the history of attempts in a header."""

import pytest

from schemas.curation import decode_curation
from schemas.dead_letters import (
    MAX_ATTEMPTS_BYTES,
    EarlierAttempt,
    Extent,
    decode_attempts,
    decode_skip,
    encode_attempts,
    encode_skip,
    skip_key,
)


def test_an_order_is_named_by_its_batch() -> None:
    extent = Extent("thalweg.documents.v1", 3, 17, 25)
    assert skip_key(extent) == b"thalweg.documents.v1/skip/3:17-25"
    assert decode_skip(skip_key(extent)) == extent


@pytest.mark.parametrize(
    "key", [None, b"", b"c/settings/chunking", b"t/skip/3:17", b"t/skip/x:1-2", b"t/skip/1:1-2/", b"/skip/1:1-2"]
)
def test_other_records_are_no_orders(key: bytes | None) -> None:
    assert decode_skip(key) is None


def test_the_settings_of_collections_pass_over_orders() -> None:
    extent = Extent("thalweg.documents.v1", 3, 17, 25)
    assert decode_curation(skip_key(extent), encode_skip(extent, "checksum")) is None


def attempts(count: int) -> list[EarlierAttempt]:
    return [
        EarlierAttempt(
            number=number,
            reason="r" * 100,
            stage="s" * 40,
            at="2026-11-23T17:00:00.123456+00:00",
            letter=f"{10**8}:{10**17}",
            source=f"3:{number}",
        )
        for number in range(1, count + 1)
    ]


@pytest.mark.parametrize("count", [0, 1, 10])
def test_attempts_come_back_as_they_were(count: int) -> None:
    assert decode_attempts(encode_attempts(attempts(count))) == attempts(count)


def test_of_many_attempts_the_first_and_last_are_kept() -> None:
    encoded = encode_attempts(attempts(1_000))
    assert [each.number for each in decode_attempts(encoded)] == [1, *range(992, 1_001)]
    assert len(encoded) < MAX_ATTEMPTS_BYTES


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"{",
        b"7",
        b"[7]",
        b"[{}]",
        b"\xff",
        b"[" * 100_000,
        encode_attempts(attempts(1)).replace(b"3:1", b"x"),
    ],
)
def test_a_header_that_others_wrote_is_no_history(header: bytes | None) -> None:
    assert decode_attempts(header) == []
