"""Commands in a locale whose encoding is not UTF-8."""

import os
import subprocess
import sys
from pathlib import Path


def test_what_a_locale_cannot_show_is_escaped(tmp_path: Path) -> None:
    """ASCII, as the `C` locale has it without Python's own way round it (PEP 538, PEP 540)."""
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "thalweg", "config", "show", "--data-dir", "h\u00e6llo/\u65e5\u672c"]
    done = subprocess.run(command, env=os.environ | locale, cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"h\xe6llo/\u65e5\u672c/thalweg.toml" in done.stdout.replace(b"\n", b"")
