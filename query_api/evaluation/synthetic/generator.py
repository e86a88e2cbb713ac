"""A set of generated questions and its labelled folder: the same collection and seed give the same bytes."""

import gzip
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from query_api.evaluation.datasets import DEFAULT_SPLIT, KIND, QRELS_HEADER
from query_api.evaluation.synthetic.multi_hop import multi_hop
from query_api.evaluation.synthetic.single_hop import exact, semantic, structured, temporal
from query_api.evaluation.synthetic.source import GeneratedQuestion, Generator, IndexedDocument, Source, Vocabulary
from schemas.errors import Failure, WrongSetting

GENERATORS: Mapping[str, Generator] = {
    "exact": exact,
    "structured": structured,
    "semantic": semantic,
    "temporal": temporal,
    "multi-hop": multi_hop,
}


class QuestionSet(msgspec.Struct, frozen=True, kw_only=True):
    """`wanted` is the requested number of questions of each kind; `made` holds as many as the collection gives, each
    once."""

    collection: str
    seed: int
    wanted: int
    documents: tuple[IndexedDocument, ...]
    made: tuple[GeneratedQuestion, ...]

    def counts(self, kinds: Sequence[str]) -> dict[str, int]:
        return {kind: sum(each.kind == kind for each in self.made) for kind in kinds}


def parse_kinds(names: str) -> tuple[str, ...]:
    """The kinds of a comma-separated list. Raises WrongSetting for one that is not known."""
    wanted = tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in wanted:
        if name not in GENERATORS:
            raise WrongSetting(f"There is no kind of question {name!r}; choose --kinds from {','.join(GENERATORS)}.")
    return wanted or tuple(GENERATORS)


def generate_questions(
    collection: str, documents: Sequence[IndexedDocument], kinds: Sequence[str], count: int, seed: int
) -> QuestionSet:
    """Raises Failure when the documents give no question of any of the kinds."""
    source = Source(documents, Vocabulary(documents), {document.id: document for document in documents})
    made: list[GeneratedQuestion] = []
    for kind in kinds:
        made += islice(_distinct(kind, source, seed), count)
    if not made:
        raise Failure(
            f"The collection {collection!r} gives no question of these kinds ({', '.join(kinds)}): its documents hold "
            "too little text, no fields, and no links. Choose other --kinds, or another collection."
        )
    return QuestionSet(collection=collection, seed=seed, wanted=count, documents=tuple(documents), made=tuple(made))


def _distinct(kind: str, source: Source, seed: int) -> Iterator[GeneratedQuestion]:
    seen: set[str] = set()
    for made in GENERATORS[kind](source, random.Random(f"{seed} {kind}")):
        if made.text not in seen:
            seen.add(made.text)
            yield made


def write_folder(questions: QuestionSet, folder: Path) -> None:
    """corpus.jsonl.gz, queries.jsonl and qrels/dev.tsv. Raises WrongSetting where there is a labelled folder already,
    and for a document id that a table of judgements cannot hold."""
    if (folder / "qrels").exists():
        raise WrongSetting(f"{folder} holds labelled questions already. Name another folder with --out, or remove it.")
    numbered = [(f"{made.kind}-{number:04d}", made) for number, made in enumerate(questions.made, 1)]
    rows = [(name, document, str(grade)) for name, made in numbered for document, grade in made.gold.items()]
    invalid = next((document for _, document, _ in rows if "\t" in document or "\n" in document), None)
    if invalid is not None:
        raise WrongSetting(f"The id {invalid!r} holds a tab or a line end, which qrels cannot. Leave it out.")
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
                }
                | ({"answer": made.answer} if made.answer else {}),
            }
            for name, made in numbered
        )
    )
    table = "\n".join("\t".join(row) for row in [QRELS_HEADER, *rows])
    (folder / "qrels" / f"{DEFAULT_SPLIT}.tsv").write_text(f"{table}\n", encoding="utf-8")


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
