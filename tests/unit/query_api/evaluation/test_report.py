"""The summary on a terminal: whole figures whatever its width, and word of what has no room."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from query_api.evaluation.approaches import APPROACHES, approaches_named
from query_api.evaluation.datasets import read_folder
from query_api.evaluation.report import show_summary
from query_api.evaluation.results import Evaluation
from query_api.evaluation.runner import Plan, evaluate
from tests.unit.query_api.evaluation.folders import write_folder
from tests.unit.query_api.evaluation.pretend_service import PretendService

WITH_INTERVAL = re.compile(r"\d+\.\d \[\d+\.\d, \d+\.\d\]")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    folder: Path = write_folder(tmp_path_factory.mktemp("made") / "birds")
    plan = Plan(collections=(read_folder(folder),), approaches=approaches_named([]), k=5)
    return evaluate(plan, PretendService().client)


def lines_at(width: int, found: Evaluation) -> list[str]:
    text = io.StringIO()
    show_summary(Console(file=text, width=width, soft_wrap=True), found, None)
    return text.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "measures", "intervals", "told"),
    [(200, 3, 3, False), (80, 3, 2, True), (60, 3, 1, True), (48, 3, 0, True), (30, 1, 0, True)],
)
def test_what_has_no_room_is_left_out_and_nothing_is_cut(
    found: Evaluation, width: int, measures: int, intervals: int, told: bool
) -> None:
    lines = lines_at(width, found)
    start = next(number for number, line in enumerate(lines) if line.startswith("approach"))
    table = lines[start : start + 1 + len(APPROACHES)]
    assert [row.split()[0] for row in table] == ["approach", *APPROACHES]
    assert len(table[0].split()) == 1 + measures + 2, "p50 and ms are two words"
    assert {len(WITH_INTERVAL.findall(row)) for row in table[1:]} == {intervals}
    assert max(map(len, table)) <= width
    assert "…" not in "".join(lines)
    assert any("no room" in line for line in lines) is told


def test_where_not_even_one_measure_fits_the_table_is_folded(found: Evaluation) -> None:
    def characters(width: int) -> list[str]:
        return sorted("".join("".join(lines_at(width, found)).split()))

    assert characters(14) == characters(30)
