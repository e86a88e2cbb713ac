"""A labelled collection read from a folder: documents, questions, and which document answers which question.

The layout is BEIR's (Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information
Retrieval Models"): `corpus.jsonl` {_id, title, text, metadata}, `queries.jsonl` {_id, text, metadata}, both also with
.gz, and `qrels/<split>.tsv` with the header query-id, corpus-id, score.
"""

import csv
import gzip
import zlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from schemas.errors import WrongSetting

DEFAULT_SPLIT = "dev"
QRELS_HEADER = ["query-id", "corpus-id", "score"]
KIND = "kind"  # the metadata field that names a question's kind

Line = TypeVar("Line", bound="LabelledDocument | Question")


class LabelledDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the corpus."""

    id: str = msgspec.field(name="_id")
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it has neither text nor title: the service takes no such document."""
        return not any(text and text.strip() for text in (self.text, self.title))

    @property
    def is_title_only(self) -> bool:
        """Whether its title is all there is to find it by."""
        return not self.is_empty and not (self.text and self.text.strip())


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the queries."""

    id: str = msgspec.field(name="_id")
    text: str
    metadata: dict[str, Any] | None = None


class LabelledCollection(msgspec.Struct, frozen=True, kw_only=True):
    """`judgements` is {question id: {document id: grade}}; `questions`, in file order, have a grade above 0."""

    name: str
    split: str
    documents: tuple[LabelledDocument, ...]
    questions: tuple[Question, ...]
    judgements: Mapping[str, Mapping[str, int]]


def read_folder(folder: Path, split: str | None = None) -> LabelledCollection:
    """The collection in a folder. Without `split`: dev where there is one, else the only one there is.

    Raises WrongSetting, with a sentence that says what to do, for anything that would make figures wrong: a missing
    file, a line that does not fit, an id twice, a judgement for what is not there, no question with a judgement.
    """
    if not folder.is_dir():
        raise WrongSetting(f"There is no folder {str(folder)!r}; name one that holds corpus.jsonl[.gz].")
    documents = _read_lines(folder, "corpus", LabelledDocument)
    questions = _read_lines(folder, "queries", Question)
    qrels = _qrels_file(folder, split)
    judgements = _read_judgements(qrels, {question.id for question in questions}, {each.id for each in documents})
    judged = tuple(each for each in questions if any(grade > 0 for grade in judgements.get(each.id, {}).values()))
    if not judged:
        raise WrongSetting(f"{qrels} names no relevant document for any question; without one there is no measure.")
    return LabelledCollection(
        name=folder.resolve().name, split=qrels.stem, documents=documents, questions=judged, judgements=judgements
    )


def spread_out(questions: tuple[Question, ...], count: int | None) -> tuple[Question, ...]:
    """At most `count` of the questions, evenly spaced, so that a file ordered by kind is sampled across its kinds."""
    if count is None or count >= len(questions):
        return questions
    return tuple(questions[number * len(questions) // count] for number in range(count))


def _read_lines(folder: Path, stem: str, kind: type[Line]) -> tuple[Line, ...]:
    names = (folder / f"{stem}.jsonl.gz", folder / f"{stem}.jsonl")
    file = next((name for name in names if name.is_file()), None)
    if file is None:
        raise WrongSetting(f"{folder} holds no {stem}.jsonl.gz and no {stem}.jsonl; put one there.")
    decoder = msgspec.json.Decoder(kind)
    first_seen: dict[str, int] = {}
    found: list[Line] = []
    for number, line in _numbered(file):
        try:
            read = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WrongSetting(f"{file}, line {number}: {error}. Mend the line.") from error
        if read.id in first_seen:
            raise WrongSetting(
                f"{file}, line {number}: the id {read.id!r} stands on line {first_seen[read.id]} already. "
                "Give each line an id of its own."
            )
        if isinstance(read, Question) and not read.text.strip():
            raise WrongSetting(f"{file}, line {number}: the question {read.id!r} has no text. Give it one.")
        first_seen[read.id] = number
        found.append(read)
    if not found:
        raise WrongSetting(f"{file} is empty; fill it, or name another folder.")
    return tuple(found)


def _numbered(file: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that hold anything, numbered from 1."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise WrongSetting(f"{file} is no whole gzip file: {error}. Fetch it again.") from error


def _qrels_file(folder: Path, split: str | None) -> Path:
    there = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    if not there:
        raise WrongSetting(f"{folder / 'qrels'} holds no judgements; put a <split>.tsv there.")
    wanted = split or (DEFAULT_SPLIT if DEFAULT_SPLIT in there or len(there) > 1 else next(iter(there)))
    if wanted not in there:
        raise WrongSetting(f"{folder / 'qrels'} holds no {wanted}.tsv; choose one with --split: {', '.join(there)}.")
    return there[wanted]


def _read_judgements(file: Path, questions: Collection[str], documents: Collection[str]) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = next(rows, [])
        if header != QRELS_HEADER:
            raise WrongSetting(f"{file} begins with {header}; its first line is to be {' <tab> '.join(QRELS_HEADER)}.")
        for number, row in enumerate(rows, 2):
            if not row:
                continue
            try:
                question, document, grade = row[0], row[1], int(row[2])
            except (IndexError, ValueError) as error:
                raise WrongSetting(
                    f"{file}, line {number}: {row} is not query-id, corpus-id and a whole number. Mend the line."
                ) from error
            if question not in questions:
                raise _unknown(file, number, "question", question, "queries")
            if document not in documents:
                raise _unknown(file, number, "document", document, "corpus")
            if judgements.setdefault(question, {}).setdefault(document, grade) != grade:
                raise WrongSetting(
                    f"{file}, line {number}: {document!r} is judged twice, and differently, for {question!r}. Keep one."
                )
    return judgements


def _unknown(file: Path, number: int, what: str, identifier: str, where: str) -> WrongSetting:
    return WrongSetting(
        f"{file}, line {number}: a judgement for the {what} {identifier!r}, which {where}.jsonl does not hold. "
        f"Add it there, or take the line out."
    )
