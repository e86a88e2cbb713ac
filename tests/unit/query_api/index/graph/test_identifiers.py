"""Keys are found wherever they stand."""

import numpy as np
import pytest

from query_api.index.graph.identifiers import BLOCK, MISSING, Identifiers, find


@pytest.mark.parametrize("n_keys", [0, 1, BLOCK, BLOCK + 1, 1_000])
@pytest.mark.parametrize("n_wanted", [0, 1, 5_000])
def test_keys_in_any_order_are_found_where_they_stand_and_others_nowhere(n_keys: int, n_wanted: int) -> None:
    chance = np.random.default_rng(n_keys + n_wanted)
    keys = chance.permutation(np.unique(chance.integers(0, 1 << 63, 1_000).astype(np.uint64)))[:n_keys]
    wanted = np.concatenate((keys, chance.integers(0, 1 << 63, n_wanted).astype(np.uint64)))
    where = {key: at for at, key in enumerate(keys.tolist())}
    expected = [where.get(key, MISSING) for key in wanted.tolist()]
    identifiers = Identifiers(np.column_stack((keys, keys + np.uint64(1))))
    assert identifiers.positions(wanted).tolist() == expected
    assert identifiers.texts(np.arange(n_keys)) == [f"{key:016x}{key + 1:016x}" for key in keys.tolist()]


def test_an_id_is_found_only_by_both_its_halves() -> None:
    identifiers = Identifiers(np.array([[7, 1], [5, 2]], dtype=np.uint64))
    ids = [identifiers.text(1), identifiers.text(0), f"{7:016x}{2:016x}", "0" * 32]
    assert identifiers.positions_of(ids).tolist() == [1, 0, MISSING, MISSING]


def test_numbers_are_found_among_narrower_ones() -> None:
    assert find(np.array([2, 5, 9], dtype=np.int32), np.array([9, 3, 2, 10])).tolist() == [2, MISSING, 0, MISSING]
