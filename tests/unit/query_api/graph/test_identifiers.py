"""Keys are found wherever they stand."""

import numpy as np
import pytest

from query_api.graph.identifiers import BLOCK, MISSING, KeyOrder


@pytest.mark.parametrize("n_keys", [0, 1, BLOCK, BLOCK + 1, 1_000])
@pytest.mark.parametrize("n_wanted", [0, 1, 40, 5_000])
def test_keys_in_any_order_are_found_where_they_stand_and_others_nowhere(n_keys: int, n_wanted: int) -> None:
    chance = np.random.default_rng(n_keys + n_wanted)
    keys = chance.permutation(np.unique(chance.integers(0, 1 << 63, 1_000).astype(np.uint64)))[:n_keys]
    wanted = np.concatenate((keys, chance.integers(0, 1 << 63, n_wanted).astype(np.uint64)))
    where = {key: at for at, key in enumerate(keys.tolist())}
    assert KeyOrder(keys).find(keys, wanted).tolist() == [where.get(key, MISSING) for key in wanted.tolist()]


@pytest.mark.parametrize("upper", [0, 7, (1 << 32) - 1])
def test_keys_whose_upper_halves_are_the_same_are_told_apart(upper: int) -> None:
    keys = np.array([(upper << 32) + lower for lower in range(30, 0, -1)] + [5 << 32], dtype=np.uint64)
    order = KeyOrder(keys)
    assert order.find(keys, keys).tolist() == list(range(31))
    assert order.find(keys, np.array([(upper << 32) + 31, 6 << 32], dtype=np.uint64)).tolist() == [MISSING, MISSING]
