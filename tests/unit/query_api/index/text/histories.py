"""Histories of documents that come, change and go: what the segments must follow, and what is left at each step."""

from typing import NamedTuple

from hypothesis import strategies as st

from schemas.ids import DocumentKey

COLLECTIONS = ("a", "b")
KEYS = [DocumentKey(collection, str(number)) for collection in COLLECTIONS for number in range(6)]
TERMS = [0, 1, 2, 3, 2**31, 2**32 - 1]

Rows = list[tuple[str, list[int]]]  # id and terms of each row
State = dict[DocumentKey, Rows]


class Step(NamedTuple):
    """The documents that move together: the rows each has from now on, none for one that goes."""

    moved: State


def steps() -> st.SearchStrategy[list[Step]]:
    terms = st.lists(st.sampled_from(TERMS), max_size=8)
    rows = st.lists(terms, max_size=4)
    moved = st.dictionaries(st.sampled_from(KEYS), rows, min_size=1, max_size=5)
    return st.lists(moved, max_size=25).map(
        lambda history: [
            Step(
                {key: [(f"{hash_of(key, row)}", held) for row, held in enumerate(rows)] for key, rows in moved.items()}
            )
            for moved in history
        ]
    )


def hash_of(key: DocumentKey, row: int) -> str:
    """An id whose order is not that of the documents."""
    return f"{(KEYS.index(key) * 7 + row * 5) % 101:03d}-{key}-{row}"


def after(state: State, step: Step) -> State:
    return {key: rows for key, rows in (state | step.moved).items() if rows}
