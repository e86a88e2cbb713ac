"""The report's three files: report.json with every figure, report.md, and report.html, which needs no other file."""

from pathlib import Path

import msgspec

from query_api.evaluation.findings import Evaluation
from query_api.evaluation.report.markdown import as_markdown
from query_api.evaluation.report.page import as_page


def as_json_text(found: Evaluation) -> str:
    """Every figure, down to the documents each question got. A measure that is 0 stands there; nothing is left out."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def write_reports(found: Evaluation, folder: Path) -> None:
    """Writes over the files of an earlier report."""
    for name, text in (
        ("report.json", as_json_text(found) + "\n"),
        ("report.md", as_markdown(found)),
        ("report.html", as_page(found)),
    ):
        (folder / name).write_text(text, encoding="utf-8")
