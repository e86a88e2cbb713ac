"""Numbers in few bits are the numbers they were."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.graph.arrays.packed import MOST_BITS, PADDING, Ascending, Packed, Skewed, Steep

NUMBERS = st.integers(0, MOST_BITS).flatmap(lambda bits: st.lists(st.integers(0, (1 << bits) - 1), max_size=40))


@given(NUMBERS)
def test_numbers_of_any_width_are_read_as_they_were_in_any_order(numbers: list[int]) -> None:
    packed = Packed(np.array(numbers, dtype=np.int64))
    backwards = np.arange(len(numbers))[::-1]
    assert packed.at(backwards).tolist() == numbers[::-1]
    assert [packed[at] for at in range(len(packed))] == packed.all().tolist() == numbers


@given(NUMBERS)
def test_eight_numbers_at_once_are_those_that_stand_there(numbers: list[int]) -> None:
    packed, blocks = Packed(np.array(numbers, dtype=np.int64)), np.arange(len(numbers) // 8)[::-1]
    assert packed.eights(blocks).tolist() == [numbers[8 * block : 8 * block + 8] for block in blocks.tolist()]


def test_a_number_takes_the_bits_of_the_largest() -> None:
    assert Packed(np.full(8_000, 93_014)).nbytes - PADDING == 17 * 1_000
    assert Packed(np.zeros(8_000, dtype=np.int64)).nbytes == PADDING


@pytest.mark.parametrize("number", [-1, 1 << MOST_BITS])
def test_what_does_not_fit_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="are packed, not"):
        Packed(np.array([0, number]))


@given(st.lists(st.integers(0, 5) | st.integers(0, 100_000), max_size=60))
def test_few_large_numbers_among_small_ones_are_read_as_they_were(numbers: list[int]) -> None:
    skewed = Skewed(np.array(numbers, dtype=np.int64))
    backwards = np.arange(len(numbers))[::-1]
    assert skewed.at(backwards).tolist() == numbers[::-1]
    assert skewed.all().tolist() == numbers
    assert len(skewed) == len(numbers)


def test_few_large_numbers_leave_the_small_ones_small() -> None:
    numbers = np.ones(10_000, dtype=np.int64)
    numbers[::1_000] = 60_000
    assert Skewed(numbers).nbytes < 10_000 * 2 / 8 + 10 * 12 + 2 * PADDING


@given(st.lists(st.integers(0, 40) | st.integers(0, 1_000_000), min_size=1, max_size=70).map(sorted))
def test_numbers_that_never_fall_are_read_and_searched(numbers: list[int]) -> None:
    ascending, plain = Ascending(np.array(numbers)), np.array(numbers)
    assert ascending.all().tolist() == [ascending[at] for at in range(len(ascending))] == numbers
    backwards = np.arange(len(numbers))[::-1]
    assert Steep(plain).at(backwards).tolist() == ascending.at(backwards).tolist() == numbers[::-1]
    wanted = np.array([0, *numbers, numbers[-1] + 1])
    assert ascending.places(wanted).tolist() == np.searchsorted(plain, wanted).tolist()


def test_a_steep_block_leaves_the_others_small() -> None:
    numbers = np.arange(16_000)
    numbers[8_000:] += 100_000
    numbers[8_007:] += 100_000
    assert Steep(numbers).nbytes == 16_000 + 1_000 * 4 + 16 * 4
    assert Steep(numbers).at(np.array([8_006, 8_007])).tolist() == [108_006, 208_007]


def test_numbers_that_fall_are_refused() -> None:
    with pytest.raises(ValueError, match="never fall"):
        Ascending(np.array([3, 2]))
