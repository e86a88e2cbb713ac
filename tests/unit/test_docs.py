"""What README, ARCHITECTURE, CHANGELOG and docs/ name exists.

Commands, settings, routes, metrics, files, links, formats, reasons of refusals.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, get_args

import pytest
from typer.main import get_command

from indexer.parsing import formats
from query_api.app import create_app
from query_api.cli.evaluate import BESIDE
from query_api.settings import ServiceSettings
from schemas.errors import DeadLetterReason
from schemas.events import DocumentDelete, DocumentUpsert, decode_document_event
from schemas.search import SearchRequest
from schemas.settings import KafkaSettings, LimitSettings
from schemas.topics import TopicNames
from tests.settings_table import PAGE as CONFIGURATION
from tests.settings_table import rows, table
from thalweg import app

ROOT = Path(__file__).parents[2]
PACKAGES = ("schemas", "indexer", "kafka_client", "streams", "query_api")
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {str(page.relative_to(ROOT)): page.read_text() for page in PAGES}

SHELL_COMMAND = re.compile(r"\.venv/bin/thalweg ([^\n#]*)")
INLINE_COMMAND = re.compile(r"`thalweg ([^`\n]+)`")
MAKE_TARGET = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)
BENCH_MODULE = re.compile(r"python -m (tests\.[a-z_.]+[a-z_])")
SETTING = re.compile(r"THALWEG_[A-Z0-9_]+\*?")
METRIC = re.compile(r"`(thalweg_[a-z_]+)`")
ROUTE = re.compile(r"(?:`(?:(GET|POST|PUT|DELETE) )?|localhost:8420)(/(?:v1/[^`'\s]+|livez|readyz|metrics))")
FILE = re.compile(rf"`((?:{'|'.join((*PACKAGES, 'tests', 'deploy', 'docs', 'training'))})/[\w./-]*)`")
SYMBOLS = re.compile(r"`([\w/]+\.py)`: ((?:`\w+`(?:, | and )?)+)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FROM_INDEX = re.compile(r"(?<![\w/.-])thalweg(?![\w/.-])")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def named(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """(page, match), each once."""
    return sorted({(name, found) for name, text in TEXTS.items() for found in pattern.findall(text)})


def sources() -> Iterator[str]:
    return (file.read_text() for package in PACKAGES for file in (ROOT / package).rglob("*.py"))


@pytest.mark.parametrize(("page", "command"), [*named(SHELL_COMMAND), *named(INLINE_COMMAND)])
def test_each_command_exists_with_its_options(page: str, command: str) -> None:
    words = re.findall(r"'[^']*'|\S+", command)
    known = get_command(app)
    while words and hasattr(known, "commands"):
        assert words[0] in known.commands, f"{page}: thalweg {command}"
        known = known.commands[words.pop(0)]
    if command.startswith(tuple(f"evaluate {what} " for what in BESIDE)):  # commands of their own
        known = get_command(BESIDE[words[0]])
    options = {option for parameter in known.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("-") and word != "-"} <= options, page


def test_each_command_is_explained() -> None:
    def commands(known: Any, words: tuple[str, ...] = ()) -> Iterator[str]:
        if not hasattr(known, "commands"):
            yield " ".join(words)
            return
        for name, command in known.commands.items():
            yield from commands(command, (*words, name))

    page = TEXTS["docs/commands.md"]
    assert [command for command in commands(get_command(app)) if f"`thalweg {command}`" not in page] == []


def test_each_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = named(MAKE_TARGET)
    assert targets
    for page, target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"


def test_each_program_of_the_tests_exists() -> None:
    for page, module in named(BENCH_MODULE):
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), f"{page}: {module}"


def test_nothing_says_to_fetch_thalweg_from_a_package_index() -> None:
    """It is in none: what is offered is the checkout, or the file of a wheel."""
    for name, text in [*TEXTS.items(), *(("a source", source) for source in sources())]:
        offers = re.findall(r"""(?:pip|pipx|uv|poetry)(?: \w+)* (?:install|add)\b[^`\n]*""", text)
        assert [each for each in offers if FROM_INDEX.search(each)] == [], name


def test_extras_that_are_offered_are_declared() -> None:
    declared = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    texts = "\n".join([*TEXTS.values(), *sources()])
    offered = set(re.findall(r"(?:\.whl|'\.|thalweg)\[(\w+)\]|install_extra\([\"'](\w+)", texts))
    named_extras = {name for pair in offered for name in pair if name}
    assert {"torch", "spacy", "evaluate"} <= named_extras <= declared


def test_the_table_of_settings_is_the_settings_own() -> None:
    assert table() in CONFIGURATION.read_text(), "run python -m tests.settings_table"


def test_each_setting_exists() -> None:
    known = {re.findall(SETTING, row)[0] for row in rows()} | {"THALWEG_CONFIG_FILE"}
    for page, setting in named(SETTING):
        if setting.endswith("*"):
            assert any(each.startswith(setting[:-1]) for each in known), f"{page}: {setting}"
        else:
            assert setting in known, f"{page}: {setting}"


@cache
def routes() -> list[tuple[str, re.Pattern[str]]]:
    paths = create_app(ServiceSettings()).openapi()["paths"]
    return [
        (method.upper(), re.compile(re.sub(r"\\{\w+\\}", ".+", re.escape(path))))
        for path in paths
        for method in paths[path]
    ]


def test_each_route_exists() -> None:
    written = [(name, *found) for name, text in TEXTS.items() for found in ROUTE.findall(text)]
    assert len(written) > 20
    for page, method, path in written:
        bare = path.partition("?")[0].removesuffix("…")
        known = [each for each, pattern in routes() if pattern.fullmatch(bare)]
        assert (method in known) if method else known, f"{page}: {method} {path}"


def test_each_route_is_explained() -> None:
    paths = {path for name, text in TEXTS.items() for _, path in ROUTE.findall(text)}
    bare = [re.sub(r"[?…].*", "", path) for path in paths]
    missing = {pattern.pattern for _, pattern in routes() if not any(pattern.fullmatch(path) for path in bare)}
    assert not missing


def test_each_metric_exists_and_is_listed() -> None:
    known = {name for text in sources() for name in re.findall(r'"(thalweg_[a-z_]+)"', text)}
    written = named(METRIC)
    for page, metric in written:
        assert metric.removesuffix("_total") in known, f"{page}: {metric}"
    assert known <= {metric.removesuffix("_total") for page, metric in written if page == "docs/observe.md"}


def test_each_search_parameter_is_explained() -> None:
    table_of_parameters = TEXTS["docs/search.md"].partition("## Parameters")[2].partition("## Filters")[0]
    first_cells = " ".join(line.split("|")[1] for line in table_of_parameters.splitlines() if line.startswith("| `"))
    explained = set(re.findall(r"`(\w+)`", first_cells))
    weights = {"vector_weight", "keyword_weight", "graph_weight"}  # in the row of `fusion`
    assert explained == set(SearchRequest.model_fields) - weights
    assert all(f"`{weight}`" in table_of_parameters for weight in weights)


def test_each_file_and_package_exists() -> None:
    for page, path in named(FILE):
        assert (ROOT / path).exists(), f"{page}: {path}"


def test_architecture_names_symbols_that_their_files_have() -> None:
    named_symbols = [
        (path, symbol)
        for path, symbols in SYMBOLS.findall(TEXTS["ARCHITECTURE.md"])
        for symbol in re.findall(r"`(\w+)`", symbols)
    ]
    assert len(named_symbols) > 15
    assert [each for each in named_symbols if not re.search(rf"\b{each[1]}\b", (ROOT / each[0]).read_text())] == []


@pytest.mark.parametrize("package", ["indexer", "streams", "query_api"])
def test_architecture_lists_the_packages_that_there_are(package: str) -> None:
    rows_of_package = TEXTS["ARCHITECTURE.md"].partition(f"| in `{package}/` |")[2].partition("\n\n")[0]
    listed = {
        name
        for row in rows_of_package.splitlines()
        for name in re.findall(r"`([a-z_]+)/", row.partition("| ")[2].partition(" |")[0])
    }
    there = {file.parent.name for file in (ROOT / package).glob("*/__init__.py")}
    assert listed == there


def anchors(text: str) -> set[str]:
    """Those that GitHub gives headings."""
    headings = HEADING.findall(CODE_BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", TEXTS)
def test_each_link_between_pages_resolves(name: str) -> None:
    for link in LINK.findall(CODE_BLOCK.sub("", TEXTS[name])):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), f"{name}: {link}"
        assert not anchor or anchor in anchors(target.read_text()), f"{name}: {link}"


def test_each_page_is_linked_from_another() -> None:
    linked = {
        ((ROOT / name).parent / link.partition("#")[0]).resolve()
        for name, text in TEXTS.items()
        for link in LINK.findall(text)
    }
    assert not [name for name in TEXTS if name != "README.md" and (ROOT / name) not in linked]


class RecordingProducer:
    """kafka-python's producer, as far as the examples use it."""

    sent: ClassVar[list[tuple[str, bytes | None, bytes, list[tuple[str, bytes]]]]] = []
    partition, offset = 3, 1042

    def __init__(self, **_settings: object) -> None:
        self.sent.clear()

    def send(
        self, topic: str, value: bytes | None, *, key: bytes, headers: Sequence[tuple[str, bytes]] = ()
    ) -> "RecordingProducer":
        self.sent.append((topic, value, key, list(headers)))
        return self

    def get(self, timeout: float) -> "RecordingProducer":
        assert timeout
        return self


@pytest.mark.parametrize("page", ["README.md", "docs/ingestion.md"])
def test_the_example_publishes_what_is_accepted_and_prints_the_token(
    page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("kafka.KafkaProducer", RecordingProducer)
    [example] = re.findall(r"```python\n(.*?)```", TEXTS[page], re.DOTALL)
    exec(compile(example, page, "exec"), {})
    assert capsys.readouterr().out == "3:1042\n"
    assert RecordingProducer.sent
    for topic, value, key, headers in RecordingProducer.sent:
        assert topic == TopicNames(KafkaSettings().topic_prefix).documents
        event = decode_document_event(key, value, headers, LimitSettings())
        assert isinstance(event, DocumentDelete if value is None else DocumentUpsert)
        assert getattr(event, "unknown_fields", ()) == ()


def test_the_example_page_is_short_and_what_is_shown_of_it_is_its_own() -> None:
    page = (ROOT / "docs" / "examples" / "search.html").read_text()
    assert page.count("\n") < 60
    about_pages = TEXTS["docs/sse.md"].partition("## From a page, with a key")[2]
    shown = re.findall(r"```js\n(.*?)```", about_pages, re.DOTALL)
    lines = [line.strip() for line in page.splitlines()]
    assert len(shown) == 2
    for excerpt in shown:
        wanted = [line.strip() for line in excerpt.strip().splitlines()]
        assert any(lines[at : at + len(wanted)] == wanted for at in range(len(lines))), excerpt


def test_every_format_is_in_the_table() -> None:
    text = TEXTS["docs/formats.md"]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    languages = 0
    for known in formats():
        if known.parser.endswith("source_code"):
            languages += 1
            continue
        [row] = [line for line in lines if line.startswith(f"| {known.name} |")]
        assert f"`{known.media_type}`" in row
        assert row.split("|")[3].split() == list(known.extensions)
    assert f"{languages} languages" in text


def test_the_table_of_bad_input_names_every_reason_of_a_dead_letter_and_no_other() -> None:
    lines = TEXTS["docs/bad-input.md"].splitlines()
    in_table = {reason for line in lines for reason in re.findall(r"`(\w+)`", line.split("|")[-2:][0])}
    of_requests_only = {"another_log", "fair_share", "not_utf8", "overloaded", "too_many_members"}
    of_requests_only |= {"cycle", "duplicate_id", "unreadable"}
    assert in_table == set(get_args(DeadLetterReason)) | of_requests_only
