"""Small files by which the processes on one data directory find each other, and know each other's installation."""

import os
import re
import socket
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

RUNNING_FILE = "running.json"
INSTALLATION_FILE = "installation.json"
INSTALLATION_HEADER = "Thalweg-Installation"
WORKER_FILE = "worker.json"
BEAT_SECONDS = 2.0  # between two writes of the worker's state
MAX_CRASHES = 20
_WORKER_FILE_BYTES = 4_096
_MAX_CHARACTERS = 300
_MAX_NOTE_CHARACTERS = 700
_MAX_NOTES = 2


class Running(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What runs on this data directory or is starting; an empty address is one that nobody has announced.

    `installation` is the id that the service at `service_url` answers with.
    """

    pid: int
    kafka: str = ""
    service_url: str = ""
    installation: str = ""


class _Announcement(Running, frozen=True, kw_only=True, omit_defaults=True):
    """`machine` is where `pid` means this process, `started` when it began there, `folder` the directory's inode: a
    copy of the directory announces nothing."""

    machine: str
    started: str
    folder: int

    def is_true(self, folder: int) -> bool:
        """Whether the process that wrote it into this folder still runs."""
        return self.folder == folder and self.machine == _machine() and self._is_alive()

    def is_over(self) -> bool:
        """Whether that process is known to have ended."""
        return self.machine == _machine() and not self._is_alive()

    def _is_alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except PermissionError:  # someone else's
            pass
        except OSError:
            return False
        return self.started == _started(self.pid)


class _Installation(msgspec.Struct, frozen=True):
    """`inode` is that of the directory: a copy of it is another installation."""

    id: str
    inode: int


def announce(data_dir: Path, running: Running, part: str = "") -> None:
    """Write atomically what runs here, with the installation's id. `part` is empty for `thalweg up`, else the name of a
    process that runs alone. Raises OSError."""
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in data_dir.glob("running*.json"):
        if (other := _read(path)) is not None and other.is_over():
            path.unlink(missing_ok=True)
    known = running.installation or installation_of(data_dir, make=True)
    announcement = _Announcement(
        pid=running.pid,
        kafka=running.kafka,
        service_url=running.service_url,
        installation=known,
        machine=_machine(),
        started=_started(running.pid),
        folder=data_dir.stat().st_ino,
    )
    _write(_announcement_path(data_dir, part), msgspec.json.encode(announcement))


def withdraw(data_dir: Path, part: str = "") -> None:
    """Remove what this process has announced, and nothing that another one has."""
    path = _announcement_path(data_dir, part)
    found = _read(path)
    if found is not None and (found.pid, found.machine) == (os.getpid(), _machine()):
        with suppress(OSError):
            path.unlink()


@contextmanager
def announced(data_dir: Path, part: str, *, kafka: str | None, service_url: str = "") -> Iterator[str]:
    """Announce this process until the end of the block; yields a sentence where that is not possible, else nothing."""
    problem = ""
    try:
        announce(data_dir, Running(pid=os.getpid(), kafka=kafka or "", service_url=service_url), part)
    except OSError as error:
        problem = f"Commands do not find this process by the data directory {data_dir}: {error.strerror or error}."
    try:
        yield problem
    finally:
        withdraw(data_dir, part)


def find_running(data_dir: Path) -> Running | None:
    """What is announced here by processes that still run, `thalweg up` before those that run alone; None where
    there is nothing. Their addresses may not answer yet, or belong to another process by now."""
    try:
        folder = data_dir.stat().st_ino
    except OSError:
        return None
    paths = sorted(data_dir.glob("running*.json"), key=lambda path: (path.name != RUNNING_FILE, path.name))
    found = [each for each in map(_read, paths) if each is not None and each.is_true(folder)]
    if not found:
        return None
    service = next((each for each in found if each.service_url), None)
    kafka = next((each.kafka for each in found if each.kafka), "")
    if service is None:
        return Running(pid=found[0].pid, kafka=kafka)
    return Running(pid=service.pid, kafka=kafka, service_url=service.service_url, installation=service.installation)


def installation_of(data_dir: Path, *, make: bool = False) -> str:
    """The id of the installation whose data directory this is, 32 hex digits; empty where there is none and none is to
    be made. Raises OSError where it cannot be made."""
    path = data_dir / INSTALLATION_FILE
    for _ in range(2):
        try:
            inode = data_dir.stat().st_ino
            found = msgspec.json.decode(path.read_bytes(), type=_Installation)
            if found.inode == inode:
                return found.id
        except (OSError, msgspec.DecodeError):
            pass
        if not make:
            break
        _write(path, msgspec.json.encode(_Installation(uuid.uuid4().hex, data_dir.stat().st_ino)))
    return ""


def is_of_processes(name: str) -> bool:
    """Whether a file of this name in a data directory only announces what runs on it."""
    return name == INSTALLATION_FILE or re.fullmatch(r"running(\..*)?\.json", name) is not None


def reachable(host: str) -> str:
    """The address under which this machine reaches a server that listens on `host`, as written in a URL."""
    if host == "0.0.0.0":  # noqa: S104 - nothing is bound here
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def _announcement_path(data_dir: Path, part: str) -> Path:
    if not part:
        return data_dir / RUNNING_FILE
    host = re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())  # containers that share the directory have equal pids
    return data_dir / f"running.{part}.{host}.json"


def _read(path: Path) -> _Announcement | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Announcement)
    except (OSError, msgspec.DecodeError):
        return None


def _write(path: Path, content: bytes) -> None:
    """Atomically, for those to read who may read the directory."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(0o600 | stat.S_IMODE(path.parent.stat().st_mode) & 0o044)
    temporary.replace(path)


def _machine() -> str:
    """Within which process ids are unique: a boot of a kernel and a namespace of it, else the machine by name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """When the process began, in ticks since the boot; empty where it has ended, or the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


Phase = Literal["starting", "running", "stopped", "failed"]


class WorkerState(msgspec.Struct, frozen=True, kw_only=True):
    """The worker's own report at `at_ms`. A worker that was killed leaves the phase it was in.

    `missing` is what it needs before it works, `notes` what the operator should know and do, `waiting_for` {what is
    being retried: the failure}, `crashes_ms` the times of earlier crashes on this directory, the latest last,
    `last_failure` the message of the latest.
    """

    at_ms: int
    phase: Phase
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    metrics_url: str = ""
    waiting_for: dict[str, str] = {}
    crashes_ms: tuple[int, ...] = ()
    last_failure: str | None = None


def write_state(data_dir: Path, state: WorkerState) -> None:
    """In place and in one write, so that it needs no room on a full disk. Raises OSError."""
    short = msgspec.structs.replace(
        state,
        notes=tuple(note[:_MAX_NOTE_CHARACTERS] for note in state.notes[:_MAX_NOTES]),
        waiting_for={name: text[:_MAX_CHARACTERS] for name, text in state.waiting_for.items()},
        last_failure=state.last_failure and state.last_failure[:_MAX_CHARACTERS],
        crashes_ms=state.crashes_ms[-MAX_CRASHES:],
    )
    file = os.open(data_dir / WORKER_FILE, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(file, msgspec.json.encode(short).ljust(_WORKER_FILE_BYTES), 0)
    finally:
        os.close(file)


def read_state(data_dir: Path) -> WorkerState | None:
    """None when there is no file, or none that can be read just now."""
    try:
        return msgspec.json.decode((data_dir / WORKER_FILE).read_bytes(), type=WorkerState)
    except (OSError, msgspec.DecodeError):
        return None
