"""A set of questions as a labelled folder, the form `thalweg evaluate` and other tools read.

The same set gives the same bytes.
"""

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from query_api.evaluation.datasets import DEFAULT_SPLIT, QRELS_HEADER
from query_api.evaluation.judgement import KIND
from query_api.evaluation.synthetic.making import QuestionSet
from schemas.errors import WrongSetting


def write_folder(questions: QuestionSet, folder: Path) -> None:
    """corpus.jsonl.gz, queries.jsonl and qrels/dev.tsv. Raises WrongSetting where there is a labelled folder already,
    and for a document id that a table of judgements cannot hold."""
    if (folder / "qrels").exists():
        raise WrongSetting(f"{folder} holds labelled questions already. Name another folder with --out, or remove it.")
    numbered = [(f"{made.kind}-{number:04d}", made) for number, made in enumerate(questions.made, 1)]
    rows = [(name, document, str(grade)) for name, made in numbered for document, grade in made.gold.items()]
    strange = next((document for _, document, _ in rows if "\t" in document or "\n" in document), None)
    if strange is not None:
        raise WrongSetting(f"The id {strange!r} holds a tab or a line end, which qrels cannot. Leave it out.")
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl.gz").write_bytes(
        gzip.compress(
            _lines(
                {
                    "_id": each.id,
                    "title": each.title,
                    "text": each.text,
                    "metadata": {
                        field: values[0] if len(values) == 1 else list(values) for field, values in each.fields.items()
                    },
                }
                for each in questions.documents
            ),
            mtime=0,
        )
    )
    (folder / "queries.jsonl").write_bytes(
        _lines(
            {
                "_id": name,
                "text": made.text,
                "metadata": {
                    KIND: made.kind,
                    "collection": questions.collection,
                    "seed": questions.seed,
                    "path": msgspec.to_builtins(made.path),
                },
            }
            for name, made in numbered
        )
    )
    table = "\n".join("\t".join(row) for row in [QRELS_HEADER, *rows])
    (folder / "qrels" / f"{DEFAULT_SPLIT}.tsv").write_text(f"{table}\n", encoding="utf-8")


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
