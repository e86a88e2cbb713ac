"""What the errors of LanceDB mean: retry, damage, or a fault of the program."""

import pytest

from indexer.errors import DamagedStore, TransientStoreError
from indexer.lance_connection import read_errors, store_errors


@pytest.mark.parametrize("error", [OSError("disk full"), RuntimeError("lance error: commit conflict")])
def test_what_the_store_raises_becomes_transient(error: Exception) -> None:
    with pytest.raises(TransientStoreError, match="Could not add chunks: "), store_errors("add chunks"):
        raise error


@pytest.mark.parametrize("error", [ValueError("bad"), RecursionError(), NotImplementedError(), TypeError()])
def test_faults_of_the_program_pass_through(error: Exception) -> None:
    with pytest.raises(type(error)), store_errors("add chunks"):
        raise error


class PanicException(BaseException):
    """What Lance's Rust code raises in a thread of ours."""


class RustPanic(Exception):
    """What it raises in a thread of its own."""


@pytest.mark.parametrize("raised", [PanicException("x"), RustPanic("x"), ValueError("x"), UnicodeError("x")])
def test_what_cannot_be_decoded_in_a_read_is_damage(raised: BaseException) -> None:
    with pytest.raises(DamagedStore, match="'chunks' cannot be decoded"), read_errors("chunks"):
        raise raised


def test_what_the_machine_cannot_do_just_now_in_a_read_is_tried_again() -> None:
    with pytest.raises(TransientStoreError), read_errors("chunks"):
        raise OSError(24, "Too many open files")
