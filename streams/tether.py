"""Starts a program that the kernel ends when its parent dies: `python tether.py PARENT_PID PROGRAM [ARGUMENT…]`.

Run as a script: it asks the kernel for the signal and then becomes the program, so the process id stays the same and no
process is added. It works this way and not in `preexec_fn`, because that may deadlock in a process with threads.

Linux only. Elsewhere the program runs untethered: after a `kill -9` of `thalweg up` on macOS its parts must be ended by
hand, and the next `up` says which port or directory they still hold.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Becomes the program; returns only by an exception."""
    parent, program = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the kernel knew of our wish
            raise SystemExit(1)
    os.execvp(program[0], program)  # noqa: S606 - it becomes the program it was asked to


if __name__ == "__main__":
    main(sys.argv[1:])
