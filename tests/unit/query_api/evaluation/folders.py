"""Tiny labelled folders, made up, and what is broken in them on purpose."""

import gzip
import json
from pathlib import Path
from typing import Any

CORPUS = [
    {"_id": "d1", "title": "Heron", "text": "The heron stands in the river.", "metadata": {"year": 1958}},
    {"_id": "d2", "title": "Otter", "text": "The otter swims."},
    {"_id": "d3", "title": "Only a title", "text": ""},
]
QUERIES = [
    {"_id": "q1", "text": "Who stands?"},
    {"_id": "q2", "text": "Who swims?"},
    {"_id": "q3", "text": "Not judged"},
]
JUDGED = [("q1", "d1", "1"), ("q1", "d2", "0"), ("q2", "d2", "2")]


def write_folder(
    folder: Path,
    corpus: list[dict[str, Any]] | None = None,
    queries: list[dict[str, Any]] | None = None,
    judged: list[tuple[str, ...]] | None = None,
    *,
    split: str = "dev",
    compressed: bool = False,
) -> Path:
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    for stem, rows in (("corpus", corpus or CORPUS), ("queries", queries or QUERIES)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        if compressed:
            (folder / f"{stem}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / f"{stem}.jsonl").write_text(text)
    rows = [("query-id", "corpus-id", "score"), *(JUDGED if judged is None else judged)]
    (folder / "qrels" / f"{split}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return folder
