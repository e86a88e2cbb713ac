"""What all tests share: which of them run apart, limits of processor time, one Kafka, and durations by folder."""

import ast
import time
import warnings
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from streams.embedded_kafka.broker import EmbeddedKafka

TESTS = Path(__file__).parent
SLOWEST_FOLDERS = 10
SHARED = ("thalweg", "hashing", "console", "worker")  # fixtures of a session that hold running processes
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
QUICK_COMPACTION = {"log.cleaner.backoff.ms": "200"}  # how often the broker looks for something to compact

settings.register_profile("outcome", deadline=None)  # a loaded machine fails no test
settings.load_profile("outcome")


class ByWhatTheyShare(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist is not typed
    """Whole files to one process, and all files that share running processes to the same."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return shared_by(self.config.rootpath / file) or file


@cache
def shared_by(file: Path) -> str | None:
    """The fixture of SHARED that tests of the file ask for, where the file does not define one of that name itself."""
    functions = [each for each in ast.walk(ast.parse(file.read_text())) if isinstance(each, FUNCTION)]
    tests = [each for each in functions if each.name.startswith("test_") or each.decorator_list]
    asked = {argument.arg for each in tests for argument in each.args.args} - {each.name for each in functions}
    return next((name for name in SHARED if name in asked), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByWhatTheyShare | None:
    return ByWhatTheyShare(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start processes and brokers run after the others, the longest of them first."""
    for item in items:
        if item.path.is_relative_to(TESTS / "integration") or item.path.is_relative_to(TESTS / "acceptance"):
            item.add_marker("serial")
    items.sort(key=lambda item: not item.path.is_relative_to(TESTS / "acceptance"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold a test that is marked so to the processor time of this process, whatever else the machine does."""
    begun = time.process_time()
    result = yield
    for marker in item.iter_markers("processor_seconds"):
        spent = time.process_time() - begun
        assert spent < marker.args[0], f"{spent:.1f} s of processor time, of {marker.args[0]} s at most"
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        if isinstance(report, pytest.TestReport):
            folder = str(Path(report.nodeid.partition("::")[0]).parent)
            seconds[folder] += report.duration
            tests[folder] += report.when == "call"
    terminalreporter.section("slowest folders")
    for folder, spent in seconds.most_common(SLOWEST_FOLDERS):
        terminalreporter.write_line(f"{spent:7.1f} s {tests[folder]:5} tests  {folder}")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of one embedded broker for the whole run; topic prefixes keep tests apart."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), properties=QUICK_COMPACTION) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(autouse=True)
def leftover_connections(request: pytest.FixtureRequest) -> None:
    """kafka-python 3.0.12 drops, unclosed, the socket of a connection that is ended while it connects (net/inet.py).

    The garbage collector closes it in a later test, which is not at fault. Any other unclosed socket fails a test.
    """
    if "kafka" in request.fixturenames:
        port = request.getfixturevalue("kafka").rpartition(":")[2]
        warnings.filterwarnings("ignore", rf"unclosed <socket.*raddr=\('127\.0\.0\.1', {port}\)", ResourceWarning)


@pytest.fixture
def topic_prefix() -> str:
    """A prefix nobody else uses, so that no test sees another one's records."""
    return f"test-{uuid4().hex[:12]}."
