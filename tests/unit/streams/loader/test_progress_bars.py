"""Bars of a load."""

import subprocess
import sys

import pytest

from streams.loader.progress_bars import progress_bars


def test_bars_are_on_standard_error_with_what_is_done_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars(shown=True) as bar:
        published = bar("published")
        for _ in range(3):
            published.advance()
        published.is_of(4)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "published" in shown.err
    assert "3/4" in shown.err


def test_bars_that_are_not_shown_import_nothing_to_show_them_with() -> None:
    program = (
        "import sys\n"
        "from streams.loader.loader import progress_bars\n"
        "with progress_bars(shown=False) as bar:\n"
        "    bar('published').advance()\n"
        "sys.exit('rich.progress' in sys.modules)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
