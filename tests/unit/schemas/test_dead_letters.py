"""Orders to skip a batch."""

import pytest

from schemas.curation import decode_curation
from schemas.dead_letters import Extent, decode_skip, encode_skip, skip_key


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
