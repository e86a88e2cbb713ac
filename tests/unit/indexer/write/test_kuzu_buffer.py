"""How much memory the graph's pages may take."""

import pytest

from indexer.write import kuzu


def test_the_buffer_is_a_quarter_of_what_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kuzu, "usable_memory_bytes", lambda: 8 * 1024**3)
    assert kuzu.default_buffer_bytes() == 2 * 1024**3
    monkeypatch.setattr(kuzu, "usable_memory_bytes", lambda: 1)
    assert kuzu.default_buffer_bytes() == kuzu.MIN_BUFFER_BYTES
