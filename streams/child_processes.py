"""Child processes that the kernel ends when their parent dies.

Run as a script, `child_processes.py PARENT_PID PROGRAM [ARGUMENT…]` asks the kernel for the signal and becomes the
program: the process id stays the same. `preexec_fn` may deadlock in a process with threads.

Linux only. Elsewhere children outlive a `kill -9` of `thalweg up` and must be ended by hand; the next `up` says which
port or directory they still hold.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1


class Child:
    """A running program that dies with this process, in a session of its own.

    Its own session keeps a Ctrl-C in the terminal from reaching it: its owner ends it, in order.
    The kernel binds the child to the *thread* that started it, so each child has one that lives as long as it does.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        append: bool = True,
    ) -> None:
        """Starts it, with standard output and error going to the file `output`. Raises OSError when that fails."""
        self.output = output
        self.output_start = 0
        self._started = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: OSError | None = None
        arguments = [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]
        self._thread = threading.Thread(
            target=self._run, args=(arguments, cwd, env, append), name=f"child {output.stem}", daemon=True
        )
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def _run(self, arguments: list[str], cwd: Path | None, env: Mapping[str, str] | None, append: bool) -> None:
        try:
            with self.output.open("ab" if append else "wb") as output:
                self.output_start = output.tell()
                self._process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env=env,
                    start_new_session=True,
                )
        except OSError as error:
            self._failure = error
            return
        finally:
            self._started.set()
        self._process.wait()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("The child was not started.")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def poll(self) -> int | None:
        """The exit code (negative: the signal that ended it), or None while it runs."""
        return self.process.poll()

    def wait(self, timeout_seconds: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        return self.process.wait(timeout_seconds)

    def stop(self, grace_seconds: float) -> int:
        """SIGTERM, and after `grace_seconds` SIGKILL; the exit code. May be called again."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                return self.process.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def kill(self) -> None:
        """SIGKILL. May be called again."""
        self.process.kill()

    def output_tail(self, lines: int = 20) -> str:
        """The end of what this run has printed."""
        return file_tail(self.output, lines, start=self.output_start)


def exit_text(code: int) -> str:
    """An exit code in words: `exit code 1`, or `killed by SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def file_size(path: Path) -> int:
    """Bytes; 0 when there is no such file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def file_tail(path: Path, lines: int, start: int = 0) -> str:
    """The last lines of a file, from byte `start` on; empty when there is no such file.

    A file shorter than `start` was rotated or emptied meanwhile, and is all new.
    """
    most = 64 * 1024
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start if start <= size else 0, size - most))
            text = file.read(most).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def _become_program(arguments: list[str]) -> None:
    """Returns only by an exception."""
    parent, program = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the call
            raise SystemExit(1)
    os.execvp(program[0], program)  # noqa: S606 - it becomes the program that was asked for


if __name__ == "__main__":
    _become_program(sys.argv[1:])
