"""The limited child process, with tasks that misbehave in every way that is foreseen."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from indexer.errors import UnparsableDocument
from indexer.sandbox.sandbox import Sandbox, SandboxFailure, SandboxLimits, _Child

TASKS = """
import gc, os, socket, subprocess, sys, time
from pathlib import Path
from indexer.errors import UnparsableDocument

class Knot:
    def __init__(self, size):
        self.itself, self.content = self, os.urandom(size)

def work(argument):
    command, _, rest = argument.decode().partition(" ")
    match command:
        case "spin":
            while True:
                pass
        case "burn":
            end = time.process_time() + 0.4
            while time.process_time() < end:
                pass
        case "sleep":
            time.sleep(60)
        case "allocate":
            return bytes(3 * 2**30)
        case "keep":
            globals()["kept"] = b"x" * (100 * 2**20)
        case "exit":
            os._exit(3)
        case "refuse":
            raise UnparsableDocument("undecodable", "Not text.")
        case "fail":
            raise ValueError("a secret of the document")
        case "recurse":
            return work(argument)
        case "connect":
            socket.create_connection(("127.0.0.1", 9))
        case "write":
            Path(rest).write_text("x")
        case "environment":
            return Path("/proc/self/environ").read_bytes()
        case "open":
            return Path(rest).read_bytes()
        case "parent":
            return Path(f"/proc/{os.getppid()}/environ").read_bytes()
        case "start":
            subprocess.run(["true"])
        case "print":
            print("noise", flush=True)
        case "pid":
            return str(os.getpid()).encode()
        case "big":
            return bytes(2 * 2**20)
        case "tie":
            number, size = map(int, rest.split())
            for _ in range(number):
                Knot(size)
        case "knots":
            return str(sum(isinstance(each, Knot) for each in gc.get_objects())).encode()
        case "modules":
            return " ".join(sys.modules).encode()
    return argument
"""


@pytest.fixture
def function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "misbehaving_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    return "misbehaving_tasks:work"


async def reason_of(sandbox: Sandbox, argument: bytes) -> str:
    with pytest.raises(UnparsableDocument) as caught:
        await sandbox.run(argument)
    assert "secret" not in str(caught.value)
    return caught.value.reason


async def test_results_come_back_from_one_child_that_is_used_again(function: str) -> None:
    async with Sandbox(function) as sandbox:
        assert await sandbox.run(b"echo") == b"echo"
        assert await sandbox.run(b"print something") == b"print something"
        assert await sandbox.run(b"x" * 5_000_000) == b"x" * 5_000_000
        assert await sandbox.run(b"") == b""
        assert await sandbox.run(b"pid") == await sandbox.run(b"pid") != str(os.getpid()).encode()


async def test_what_the_function_says_of_the_document_comes_back(function: str) -> None:
    async with Sandbox(function) as sandbox:
        with pytest.raises(UnparsableDocument, match=r"Not text\.") as caught:
            await sandbox.run(b"refuse")
        assert caught.value.reason == "undecodable"
        assert await reason_of(sandbox, b"fail") == "parser_failed"
        assert await sandbox.run(b"echo") == b"echo"


@pytest.mark.parametrize(
    ("argument", "limits"),
    [
        (b"spin", SandboxLimits(cpu_seconds=1, wall_seconds=60)),
        (b"sleep", SandboxLimits(wall_seconds=0.5)),
        (b"allocate", SandboxLimits(memory_bytes=256 * 2**20)),
        (b"big", SandboxLimits(output_bytes=2**20)),
        (b"exit", SandboxLimits()),
        (b"recurse", SandboxLimits()),
    ],
)
async def test_a_task_over_a_limit_is_ended_and_the_next_one_runs(
    function: str, argument: bytes, limits: SandboxLimits
) -> None:
    async with Sandbox(function, limits) as sandbox:
        assert await reason_of(sandbox, argument) == "parser_limit"
        assert await sandbox.run(b"echo") == b"echo"


async def test_a_task_over_its_cpu_limit_costs_it_once_also_in_a_used_child(
    function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    start = _Child.start

    async def counted(function: str, limits: SandboxLimits) -> _Child:
        started.append(function)
        return await start(function, limits)

    monkeypatch.setattr(_Child, "start", counted)
    async with Sandbox(function, SandboxLimits(cpu_seconds=1, wall_seconds=60)) as sandbox:
        await sandbox.run(b"echo")
        assert await reason_of(sandbox, b"spin") == "parser_limit"
        assert len(started) == 1
        await sandbox.run(b"echo")
        assert await reason_of(sandbox, b"exit") == "parser_limit"
        assert len(started) == 3, "what a used child dies of otherwise may be of an earlier task"


async def test_cpu_seconds_are_counted_for_each_task_alone(function: str) -> None:
    async with Sandbox(function, SandboxLimits(cpu_seconds=1, wall_seconds=60)) as sandbox:
        child = await sandbox.run(b"pid")
        busy = psutil.Process(int(child))
        while sum(busy.cpu_times()[:2]) < 2.2:
            await sandbox.run(b"burn")
        assert await sandbox.run(b"pid") == child


@pytest.mark.parametrize("command", ["connect", "write {path}", "start"])
async def test_network_files_and_processes_are_refused(function: str, tmp_path: Path, command: str) -> None:
    target = tmp_path / "written"
    async with Sandbox(function) as sandbox:
        assert await reason_of(sandbox, command.format(path=target).encode()) == "parser_failed"
    assert not target.exists()


async def test_a_child_has_no_settings_in_its_environment(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("THALWEG_SERVICE__API_KEY", "thalweg_kafka__sasl_password", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "a-secret")
    async with Sandbox(function) as sandbox:
        variables = (await sandbox.run(b"environment")).decode().strip("\0").split("\0")
    names = {variable.partition("=")[0] for variable in variables}
    assert names - {"LANG", "LC_ALL", "TZ", "COVERAGE_PROCESS_START"} == {"PATH", "PYTHONPATH", "PYTHONHASHSEED"}
    assert "a-secret" not in " ".join(variables)


@pytest.mark.parametrize(
    "path",
    ["/proc/{pid}/environ", "//proc/self/../{pid}/environ", "/proc/self/root/proc/{pid}/environ", "{link}/environ"],
)
async def test_what_other_processes_hold_is_refused(function: str, tmp_path: Path, path: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(f"/proc/{os.getpid()}")
    async with Sandbox(function) as sandbox:
        assert await reason_of(sandbox, f"open {path.format(pid=os.getpid(), link=link)}".encode()) == "parser_failed"
        assert await reason_of(sandbox, b"parent") == "parser_failed"
        assert b"Mem" in await sandbox.run(b"open /proc/meminfo")


async def test_one_child_in_trouble_does_not_hurt_the_other(function: str) -> None:
    async with Sandbox(function, SandboxLimits(cpu_seconds=1, wall_seconds=60), processes=2) as sandbox:
        trouble = asyncio.create_task(reason_of(sandbox, b"spin"))
        assert [await sandbox.run(b"echo") for _ in range(20)] == [b"echo"] * 20
        assert await trouble == "parser_limit"


async def test_a_child_whose_memory_has_grown_is_replaced(function: str) -> None:
    async with Sandbox(function, SandboxLimits(memory_bytes=256 * 2**20)) as sandbox:
        before = await sandbox.run(b"pid")
        await sandbox.run(b"keep")
        assert await sandbox.run(b"pid") != before


@pytest.mark.parametrize(
    ("left", "lie"),
    [(b"tie 20000 8", 0), (b"tie 1 20000000", 1), (b"tie 1000 8", 20_000)],
    ids=["many", "large", "few"],
)
async def test_of_what_tasks_leave_in_circles_only_so_much_lies_about(function: str, left: bytes, lie: int) -> None:
    async with Sandbox(function) as sandbox:
        for _ in range(30):
            await sandbox.run(left)
        assert int(await sandbox.run(b"knots")) <= lie


async def test_a_cancelled_task_leaves_no_stale_answer(function: str) -> None:
    async with Sandbox(function) as sandbox:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await sandbox.run(b"sleep")
        assert await sandbox.run(b"echo") == b"echo"


async def test_a_child_killed_from_outside_while_idle_is_noticed(function: str) -> None:
    async with Sandbox(function) as sandbox:
        os.kill(int(await sandbox.run(b"pid")), signal.SIGKILL)
        assert await sandbox.run(b"echo") == b"echo"


async def test_a_function_that_is_not_there_is_no_documents_fault(function: str) -> None:
    async with Sandbox("misbehaving_tasks:missing") as sandbox:
        with pytest.raises(SandboxFailure, match="misbehaving_tasks:missing"):
            await sandbox.run(b"echo")


async def test_no_child_is_left_when_it_closes_and_interrupts_do_not_reach_them(function: str) -> None:
    async with Sandbox(function) as sandbox:
        child = psutil.Process(int(await sandbox.run(b"pid")))
        child.send_signal(signal.SIGINT)
        assert await sandbox.run(b"echo") == b"echo"
    assert not child.is_running()
    with pytest.raises(SandboxFailure):
        await sandbox.run(b"echo")


async def test_the_child_imports_no_heavy_library(function: str) -> None:
    async with Sandbox(function) as sandbox:
        modules = set((await sandbox.run(b"modules")).decode().split())
    assert not modules & {"torch", "faust", "lancedb", "pyarrow", "numpy", "asyncio", "docutils"}
