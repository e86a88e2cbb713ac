"""The child process of `sandbox`: imports one function, applies the limits, answers one request after another.

Run as `python -m indexer.sandbox.child MODULE:FUNCTION LIMITS`, LIMITS as JSON. A request is 8 bytes of length and the
argument; a response is a status byte, 8 bytes of length and the payload. The first response says that it is ready.
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
from schemas.errors import DeadLetterReason

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
_GC_THRESHOLDS = (300_000, 20, 100)  # collecting within a document took a quarter of its time
_GC_MIN_OBJECTS = 20_000  # young objects after which to collect between requests; or when
_GC_MIN_BYTES = 8 * MIB  # the process has grown by so much
_FULL_GC_EVERY = 32  # collections; the others are of young objects only
_PROC = "/proc/"
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class SandboxLimits:
    """Limits of one task: CPU and wall seconds, bytes of memory above the idle child, bytes of its result."""

    cpu_seconds: int = 10
    wall_seconds: float = 20.0
    memory_bytes: int = 1024 * MIB
    output_bytes: int = 256 * MIB


class Status(Enum):
    """The first byte of a response. An exiting child ends after it, as its memory has grown."""

    READY = b"R"
    BROKEN = b"B"
    DONE = b"D"
    DONE_EXITING = b"d"
    UNPARSABLE = b"U"
    UNPARSABLE_EXITING = b"u"


Task = Callable[[bytes], bytes]


def main(function: str, limits: SandboxLimits) -> None:
    """Answer requests until the input ends, at the latest when the parent dies."""
    requests, responses = _take_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with_parent()
    try:
        module, _, name = function.partition(":")
        task = cast("Task", getattr(import_module(module), name))
    except (ImportError, AttributeError) as error:
        _respond(responses, Status.BROKEN, str(error).encode())
        return
    _refuse_what_no_parser_does()
    _tune_gc()
    idle_bytes = collected_bytes = _memory_bytes("resident")
    _limit_memory(limits.memory_bytes)
    _respond(responses, Status.READY, b"")
    while True:
        head = requests.read(_LENGTH_BYTES)
        if len(head) < _LENGTH_BYTES:
            return
        argument = requests.read(int.from_bytes(head, "big"))
        _limit_cpu(limits.cpu_seconds)
        status, payload = _run(task, argument, limits)
        del argument
        is_exiting = status is Status.UNPARSABLE_EXITING
        bytes_now = _memory_bytes("resident")
        if bytes_now - idle_bytes > limits.memory_bytes // 4:
            is_exiting = True
            status = Status.DONE_EXITING if status is Status.DONE else Status.UNPARSABLE_EXITING
        _respond(responses, status, payload)
        if is_exiting:
            return
        del payload
        if gc.get_count()[0] >= _GC_MIN_OBJECTS or bytes_now - collected_bytes >= _GC_MIN_BYTES:
            _collect_garbage()
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
        return Status.UNPARSABLE_EXITING, _refusal("parser_limit", f"Reading it needs more than {limit}.")
    except Exception as error:  # noqa: BLE001 (the process' edge: the parent gets every failure)
        place = _innermost(error.__traceback__)
        return Status.UNPARSABLE, _refusal("parser_failed", f"The parser failed on it: {type(error).__name__} {place}.")
    if len(result) > limits.output_bytes:
        message = f"Reading it gives {len(result):,} bytes; the limit is {limits.output_bytes:,}."
        return Status.UNPARSABLE_EXITING, _refusal("parser_limit", message)
    return Status.DONE, result


def _refusal(reason: DeadLetterReason, message: str) -> bytes:
    return msgspec.msgpack.encode((reason, message))


def _innermost(trace: TracebackType | None) -> str:
    """Where an exception came from; not its message, which may contain text of the document."""
    place = "at an unknown place"
    while trace is not None:
        place = f"in {Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _respond(responses: BinaryIO, status: Status, payload: bytes) -> None:
    responses.write(status.value + len(payload).to_bytes(_LENGTH_BYTES, "big"))
    responses.write(payload)
    responses.flush()


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Standard input and output, for this module alone: what a library prints is discarded."""
    requests, responses = os.dup(0), os.dup(1)
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 0)
    os.dup2(devnull, 1)
    return os.fdopen(requests, "rb"), os.fdopen(responses, "wb")


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


def _limit_memory(growth_bytes: int) -> None:
    """Limit the growth of the address space; disable core files, which would contain a document."""
    if sys.platform == "win32":
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = _memory_bytes("address space") + growth_bytes
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _limit_cpu(seconds: int) -> None:
    """Allow this task so many CPU seconds on top of those used before; the kernel then ends the process."""
    if sys.platform == "win32":
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(usage.ru_utime + usage.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _memory_bytes(kind: str) -> int:
    """Bytes of this process, `resident` or `address space`; 0 where the system has no `/proc`."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return int(pages[1 if kind == "resident" else 0]) * os.sysconf("SC_PAGE_SIZE")


def _tune_gc() -> None:
    """Exclude imported modules from collection, and collect rarely during a task."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _collect_garbage() -> None:
    """Between tasks nearly all young objects are garbage."""
    collections = gc.get_count()[1]
    gc.collect(2 if collections >= _FULL_GC_EVERY else 0)


def _refuse_what_no_parser_does() -> None:
    sys.dont_write_bytecode = True
    sys.addaudithook(_check)


def _check(event: str, arguments: tuple[object, ...]) -> None:
    if event.startswith(_REFUSED):
        raise PermissionError(f"{event} is refused to parsers")
    if event != "open":
        return
    file, _, flags = arguments
    if isinstance(flags, int) and flags & _WRITING:
        raise PermissionError("writing files is refused to parsers")
    if isinstance(file, str | bytes | os.PathLike) and _is_of_another_process(os.fsdecode(file)):
        raise PermissionError("looking at other processes is refused to parsers")


def _is_of_another_process(path: str) -> bool:
    """Whether it is in `/proc/<pid>`, where the environment of the worker and of others holds keys and passwords."""
    path = os.path.realpath(path)
    if not path.startswith(_PROC):
        return False
    owner = path.removeprefix(_PROC).partition("/")[0]
    return owner.isdecimal() and owner != str(os.getpid())


if __name__ == "__main__":
    main(sys.argv[1], msgspec.json.decode(sys.argv[2], type=SandboxLimits))
