"""Members of a JSON text counted over its bytes: the same as in what a decoder makes of it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.middleware import json_size as module
from query_api.middleware.json_size import JsonSize, json_size

TEXTS = st.text(alphabet='ab"\\,[]{}é🛶/\n', max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def members(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else max(1, len(inner)) + sum(map(members, inner))


@given(value=VALUES, ascii_only=st.booleans(), block=st.integers(1, 40), indent=st.sampled_from([None, 1]))
def test_every_text_is_counted_as_it_decodes_wherever_blocks_end(
    value: Any, ascii_only: bool, block: int, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        top = max(1, len(value)) if isinstance(value, list | dict) else 0
        assert json_size(text, 10**9) == JsonSize(members(value), top)


@given(st.binary(max_size=60), st.integers(1, 20))
def test_any_bytes_are_counted_somehow(text: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        json_size(text, 10**9)


def test_counting_stops_soon_after_the_limit() -> None:
    assert json_size(b"[" + b"{}," * 10_000_000 + b"{}]", 1_000).members < 300_000
