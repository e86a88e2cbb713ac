"""The child's side of `sandbox`: imports one function, takes its limits on, answers one input after another.

Run as `python -m indexer.sandbox.child MODULE:FUNCTION LIMITS`, LIMITS as JSON. Input: 8 bytes of length, then the
argument. Answer: a status byte, 8 bytes of length, then the payload; the first answer says that the child is ready.
"""

import gc
import math
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, cast

import msgspec

from indexer.errors import UnparsableDocument

if sys.platform != "win32":
    import resource

MIB = 1024 * 1024
HEAD_BYTES = 9
_LENGTH_BYTES = 8
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux' prctl(2)
_REFUSED = (
    "socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.startfile",
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "shutil.", "urllib.", "ftplib.", "http.client.", "smtplib.", "webbrowser.",
)  # fmt: skip
_COLLECT_EVERY = (300_000, 20, 100)  # a parsed document is one web of cycles: looking for garbage in it costs a quarter
_LEFT_TO_LIE = 20_000  # young objects: a small document leaves a few, and looking at them took half of its time
_BYTES_LEFT_TO_LIE = 8 * MIB  # or what these hold
_COLLECT_ALL_EVERY = 32  # collections; in each other one only what is young
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class SandboxLimits:
    """What one task may use: CPU and wall seconds, bytes of memory above the idle child, bytes of its result."""

    cpu_seconds: int = 10
    wall_seconds: float = 20.0
    memory_bytes: int = 1024 * MIB
    output_bytes: int = 256 * MIB


class Status(Enum):
    """The first byte of an answer; a child that is leaving ends after it, as its memory has grown."""

    READY = b"R"
    BROKEN = b"B"
    DONE = b"D"
    DONE_LEAVING = b"d"
    UNPARSABLE = b"U"
    UNPARSABLE_LEAVING = b"u"


Task = Callable[[bytes], bytes]


def main(function: str, limits: SandboxLimits) -> None:
    """Answer until the input ends, which it does at the latest when the parent dies."""
    questions, answers = _take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    try:
        module, _, name = function.partition(":")
        task = cast("Task", getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        _answer(answers, Status.BROKEN, str(error).encode())
        return
    _refuse_network_and_writing()
    _collect_seldom()
    idle_bytes = collected_bytes = _memory_bytes("resident")
    _limit_memory(limits.memory_bytes)
    _answer(answers, Status.READY, b"")
    while True:
        head = questions.read(_LENGTH_BYTES)
        if len(head) < _LENGTH_BYTES:
            return
        argument = questions.read(int.from_bytes(head, "big"))
        _limit_cpu(limits.cpu_seconds)
        status, payload = _run(task, argument, limits)
        del argument
        is_leaving = status is Status.UNPARSABLE_LEAVING
        bytes_now = _memory_bytes("resident")
        if bytes_now - idle_bytes > limits.memory_bytes // 4:
            is_leaving = True
            status = Status.DONE_LEAVING if status is Status.DONE else Status.UNPARSABLE_LEAVING
        _answer(answers, status, payload)
        if is_leaving:
            return
        del payload
        if gc.get_count()[0] >= _LEFT_TO_LIE or bytes_now - collected_bytes >= _BYTES_LEFT_TO_LIE:
            _collect_what_is_left()
            collected_bytes = _memory_bytes("resident")


def _run(task: Task, argument: bytes, limits: SandboxLimits) -> tuple[Status, bytes]:
    try:
        result = task(argument)
    except UnparsableDocument as error:
        return Status.UNPARSABLE, _refusal(error.reason, str(error))
    except (MemoryError, RecursionError) as error:
        limit = (
            f"{limits.memory_bytes // MIB} MiB of memory" if isinstance(error, MemoryError) else "the nesting allowed"
        )
        return Status.UNPARSABLE_LEAVING, _refusal("parser_limit", f"Reading it needs more than {limit}.")
    except Exception as error:  # noqa: BLE001 (the process' edge: the parent hears of every failure)
        place = _innermost(error.__traceback__)
        return Status.UNPARSABLE, _refusal("parser_failed", f"The parser failed on it: {type(error).__name__} {place}.")
    if len(result) > limits.output_bytes:
        message = f"Reading it gives {len(result):,} bytes; the limit is {limits.output_bytes:,}."
        return Status.UNPARSABLE_LEAVING, _refusal("parser_limit", message)
    return Status.DONE, result


def _refusal(reason: str, message: str) -> bytes:
    return msgspec.msgpack.encode((reason, message))


def _innermost(trace: TracebackType | None) -> str:
    """Where an exception came from; its own words are left out, as they may hold what the document says."""
    place = "at an unknown place"
    while trace is not None:
        place = f"in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _answer(answers: BinaryIO, status: Status, payload: bytes) -> None:
    answers.write(status.value + len(payload).to_bytes(_LENGTH_BYTES, "big"))
    answers.write(payload)
    answers.flush()


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output for this module alone: what a library prints goes nowhere."""
    questions, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    return os.fdopen(questions, "rb"), os.fdopen(answers, "wb")


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes  # only here, before it is refused

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _limit_memory(growth_bytes: int) -> None:
    """Bound the address space to what it is now and `growth_bytes`; no core file of a document is ever written."""
    if sys.platform == "win32":
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _memory_bytes("address space") + growth_bytes
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limit_cpu(seconds: int) -> None:
    """Let this task use so many more CPU seconds than all before it; the kernel ends the process at the next."""
    if sys.platform == "win32":
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(usage.ru_utime + usage.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _memory_bytes(kind: str) -> int:
    """Bytes of this process, `resident` or `address space`; 0 where the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return int(pages[1 if kind == "resident" else 0]) * os.sysconf("SC_PAGE_SIZE")


def _collect_seldom() -> None:
    """What is imported stays and is not looked at again; of what a task makes, some 100 MB may wait for its end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_EVERY)


def _collect_what_is_left() -> None:
    """Between two tasks nearly all that is young is garbage, and still in the processor's cache."""
    collections = gc.get_count()[1]
    gc.collect(2 if collections >= _COLLECT_ALL_EVERY else 0)


def _refuse_network_and_writing() -> None:
    sys.dont_write_bytecode = True
    sys.addaudithook(_check)


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"{event} is refused to parsers")
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING:
        raise PermissionError("writing files is refused to parsers")


if __name__ == "__main__":
    main(sys.argv[1], msgspec.json.decode(sys.argv[2], type=SandboxLimits))
