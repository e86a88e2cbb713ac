"""What a copy of the service does: it answers the searches it is sent, until nobody is there to send any."""

import asyncio
import ctypes
import gc
import os
import signal
import socket
from collections.abc import Callable
from contextlib import aclosing, suppress
from pathlib import Path

from query_api.process_pool.messages import LONGEST_LINE, Answer, Ask, Ended, Stop, asked, ending, telling

LAST_STANDARD_FILE = 2
_FIRST_TO_GO = "1000"  # of -1000 to 1000, proc_pid_oom_score_adj(5)
_SIGNAL_AT_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG of linux/prctl.h


def open_files() -> frozenset[int]:
    """The numbers of the files this process has open. Raises OSError on a system without /proc."""
    return frozenset(int(each.name) for each in Path("/proc/self/fd").iterdir())


def run_copy(connection: socket.socket, inherited: frozenset[int], parts_of: Callable[[], Answer]) -> None:
    """Serve until the other end of the connection is closed. To be called in a process that was just forked.

    Nothing of what the service holds is let go of here: no file is closed that it shares, no object collected.
    `inherited` are the files that the service had open: what was opened since is the copy's own, by libraries that
    begin anew after a fork. `parts_of` makes what searches, with threads of its own.
    """
    gc.freeze()  # nothing of before is looked at again, so that it stays shared; and garbage of before closes no file
    signal.set_wakeup_fd(-1)  # it is the service's event loop that was to be woken
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is sent to the copies too, which end after the service
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SIGNAL_AT_PARENTS_DEATH, signal.SIGKILL)
    with suppress(OSError):  # where memory runs out, a copy is to go before the service, which can do without
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    _let_go_of_files(inherited - {connection.fileno()})
    asyncio.run(_Answering(parts_of()).run(connection))


def _let_go_of_files(numbers: frozenset[int]) -> None:
    """Point these but the standard ones nowhere: a client's connection, kept open here, would not end when the service
    ends it. The numbers stay taken, so objects of before that close them harm no newer file."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in numbers:
        if number > LAST_STANDARD_FILE:
            with suppress(OSError):  # closed since it was listed
                os.fstat(number)
                os.dup2(nowhere, number, inheritable=False)


class _Answering:
    def __init__(self, parts_of: Answer) -> None:
        self._parts_of = parts_of
        self._running: dict[int, asyncio.Task[None]] = {}

    async def run(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=LONGEST_LINE)
        while line := await reader.readline():
            match asked(line):
                case Ask() as ask:
                    self._running[ask.number] = asyncio.create_task(self._answer(ask, writer))
                case Stop(number) if number in self._running:
                    self._running[number].cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _answer(self, ask: Ask, writer: asyncio.StreamWriter) -> None:
        try:
            async with aclosing(self._parts_of(ask.request, ask.retrieval_id)) as parts:
                async for part in parts:
                    writer.write(telling(ask.number, part))
                    await writer.drain()
        except Exception as error:  # noqa: BLE001 -- edge of a process: the service searches by itself, and tells
            writer.write(ending(ask.number, Ended(f"{type(error).__name__}: {error}")))
        finally:
            del self._running[ask.number]
