"""A failing batch is bisected until the poison stands alone; a failing call is repeated."""

from collections.abc import Sequence

import pytest

from streams.runtime.retry import bisect, retry_for


class Work:
    """Doubles numbers; fails for a batch that holds one of `poison`. `batches` are those it was called with."""

    def __init__(self, *poison: int, error: type[Exception] = ValueError) -> None:
        self.poison = poison
        self.error = error
        self.batches: list[list[int]] = []
        self.rejected: list[tuple[int, str]] = []

    async def __call__(self, batch: Sequence[int]) -> list[int]:
        self.batches.append(list(batch))
        for number in batch:
            if number in self.poison:
                raise self.error(f"{number} is poison")
        return [2 * number for number in batch]

    async def reject(self, number: int, error: Exception) -> int:
        self.rejected.append((number, str(error)))
        return -1


async def test_a_batch_that_works_is_worked_on_whole() -> None:
    work = Work()
    assert await bisect([1, 2, 3], work, work.reject, name="numbers") == [2, 4, 6]
    assert work.batches == [[1, 2, 3]]


async def test_only_the_poison_is_rejected_and_results_stay_in_order() -> None:
    work = Work(3, 4)
    assert await bisect(list(range(6)), work, work.reject, name="numbers") == [0, 2, 4, -1, -1, 10]
    assert work.rejected == [(3, "3 is poison"), (4, "4 is poison")]


@pytest.mark.parametrize("limits", [{"errors": (KeyError,)}, {"fatal": (ValueError,)}])
async def test_an_error_that_no_item_is_to_blame_for_is_raised_at_once(
    limits: dict[str, tuple[type[Exception], ...]],
) -> None:
    work = Work(3)
    with pytest.raises(ValueError, match="3 is poison"):
        await bisect([1, 2, 3, 4], work, work.reject, name="numbers", **limits)  # type: ignore[arg-type]
    assert work.batches == [[1, 2, 3, 4]]


async def test_a_failure_without_any_item_is_raised() -> None:
    async def fail(_batch: Sequence[int]) -> list[int]:
        raise ValueError("there is nothing to blame")

    with pytest.raises(ValueError, match="nothing to blame"):
        await bisect([], fail, Work().reject, name="numbers")


async def test_a_call_that_is_no_coroutine_function_is_awaited_and_repeated() -> None:
    calls: list[int] = []

    async def fails_once(number: int) -> int:
        calls.append(number)
        if len(calls) == 1:
            raise OSError("away")
        return number

    assert await retry_for(5, lambda: fails_once(7), OSError, every_seconds=0) == 7
    assert calls == [7, 7]
