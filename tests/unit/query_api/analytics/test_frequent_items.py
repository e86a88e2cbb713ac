"""Counting in bounded memory."""

from dataclasses import dataclass

from query_api.analytics.frequent_items import Tally


@dataclass
class Times:
    count: int = 0


def counted(words: list[str], most: int) -> Tally[Times]:
    tally = Tally(Times, most)
    for word in words:
        tally.of(word).count += 1
    return tally


def test_everything_is_counted_exactly_while_there_is_room() -> None:
    tally = counted(list("abracadabra"), 5)
    assert [(key, times.count) for key, times in tally.items()] == [("a", 5), ("b", 2), ("r", 2), ("c", 1), ("d", 1)]
    assert not tally.approximate


def test_what_is_frequent_outlives_any_number_of_rare_things() -> None:
    words = [
        word for number in range(1_000) for word in ("often", "sometimes" if number % 4 == 0 else f"rare {number}")
    ]
    tally = counted(words, 20)
    first, second, *others = tally.items()
    assert (first[0], first[1].count) == ("often", 1_000)
    assert (second[0], second[1].count) == ("sometimes", 250)
    assert len(others) <= 18
    assert tally.approximate
