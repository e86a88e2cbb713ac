"""What the last receipts tell of records."""

from query_api.index.receipts import RecentReceipts
from schemas.receipts import Outcome, Receipt


def receipt(offset: int, outcome: Outcome, name: str = "ada") -> Receipt:
    return Receipt(
        key=f"c/{name}", outcome=outcome, partition=0, offset=offset, generation="g0001", produced_at_ms=1_000
    )


def test_what_a_record_came_to_when_it_was_read_again_counts() -> None:
    """Unless it was only passed over then."""
    receipts = RecentReceipts()
    for outcome, lost in (("dead_lettered", True), ("superseded", True), ("indexed", False), ("superseded", True)):
        receipts.add(receipt(5, outcome))
        assert (receipts.without_effect("c/ada", {0: 5}) is not None) is lost
    assert receipts.without_effect("c/bob", {0: 5}) is None, "of another document"


def test_few_are_remembered() -> None:
    receipts = RecentReceipts(capacity=3)
    for offset in range(10):
        receipts.add(receipt(offset, "dead_lettered", f"d{offset}"))
    assert [offset for offset in range(10) if receipts.without_effect(f"c/d{offset}", {0: offset})] == [7, 8, 9]
    assert [offset for offset in range(10) if receipts.newest(f"c/d{offset}")] == [7, 8, 9]
    assert receipts.reached == {0: 9}
