"""Labelled collections: documents, questions and judgements, read from a folder and loaded into the service.

The layout of a folder is BEIR's (Thakur et al. 2021, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of
Information Retrieval Models"): `corpus.jsonl` {_id, title, text, metadata}, `queries.jsonl` {_id, text, metadata}, both
also with .gz, and `qrels/<split>.tsv` with the header query-id, corpus-id, score. Questions about a collection that is
loaded already need no corpus; they may also be lines `question <tab> document id, document id` in one file.

A collection is published under a name with a hash of its documents. A collection of that name can only hold documents
of this corpus as it is now, so which of them are there is all there is to know about an earlier load, finished or not.
Documents go through `POST /v1/documents`, which answers when Kafka has confirmed them; that is also the backpressure.
"""

import csv
import gzip
import hashlib
import re
import time
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from query_api.client import ServiceClient, ServiceUnavailable, document_positions
from query_api.evaluation.results import Loaded
from schemas.errors import Failure, MalformedEvent, WrongSetting
from schemas.ids import MAX_COLLECTION_CHARACTERS, DocumentKey
from schemas.receipts import Token, merge_tokens

DEFAULT_SPLIT = "dev"
QRELS_HEADER = ["query-id", "corpus-id", "score"]
QUESTIONS_HEADER = ("question", "documents")
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
    """`judgements` is {question id: {document id: grade}}; `questions`, in file order, have a grade above 0, and
    `unanswered` have none. `documents` is empty where they are elsewhere."""

    name: str
    split: str
    documents: tuple[LabelledDocument, ...]
    questions: tuple[Question, ...]
    judgements: Mapping[str, Mapping[str, int]]
    unanswered: tuple[Question, ...] = ()


def read_folder(folder: Path, split: str | None = None) -> LabelledCollection:
    """The collection in a folder. Without `split`: dev where there is one, else the only one there is.

    Raises WrongSetting, with a sentence that says what to do, for anything that would make figures wrong: a missing
    file, a line that does not fit, an id twice, a judgement for what is not there, no question with a judgement.
    """
    if not folder.is_dir():
        raise WrongSetting(f"There is no folder {str(folder)!r}; name one that holds corpus.jsonl[.gz].")
    return _read_labels(folder, split, _read_lines(folder, "corpus", LabelledDocument))


def read_questions(source: Path, split: str | None = None) -> LabelledCollection:
    """Questions about documents that are elsewhere: a folder, whose corpus is not read, or a file of lines `question
    <tab> ids` (with commas between ids, none where nothing answers; the header `question <tab> documents` may be
    above them).

    Raises WrongSetting as `read_folder` does, but for what only a corpus shows.
    """
    if source.is_dir():
        return _read_labels(source, split, ())
    if not source.is_file():
        raise WrongSetting(f"There is no file or folder {str(source)!r}; name one that holds questions.")
    questions: list[Question] = []
    judgements: dict[str, dict[str, int]] = {}
    for number, line in _numbered(source):
        try:
            text, separator, ids = line.decode("utf-8-sig").strip("\r\n").partition("\t")
        except UnicodeDecodeError as error:
            raise WrongSetting(f"{source}, line {number}: it is not UTF-8. Save the file as UTF-8.") from error
        if number == 1 and (text, ids.strip()) == QUESTIONS_HEADER:
            continue
        if not separator or not text.strip():
            raise WrongSetting(
                f"{source}, line {number}: write the question, a tab, and the ids of the documents that answer it."
            )
        question = Question(id=str(number), text=text.strip())
        questions.append(question)
        judgements[question.id] = dict.fromkeys(filter(None, map(str.strip, ids.split(","))), 1)
    return _labelled(source, source.stem, (), questions, judgements)


def _read_labels(folder: Path, split: str | None, documents: tuple[LabelledDocument, ...]) -> LabelledCollection:
    questions = _read_lines(folder, "queries", Question)
    qrels = _qrels_file(folder, split)
    known = {each.id for each in documents} if documents else None
    judgements = _read_judgements(qrels, {question.id for question in questions}, known)
    return _labelled(qrels, folder.resolve().name, documents, questions, judgements)


def _labelled(
    judged_in: Path,
    name: str,
    documents: tuple[LabelledDocument, ...],
    questions: Sequence[Question],
    judgements: Mapping[str, Mapping[str, int]],
) -> LabelledCollection:
    answered = {identifier for identifier, grades in judgements.items() if any(grade > 0 for grade in grades.values())}
    judged = tuple(each for each in questions if each.id in answered)
    if not judged:
        raise WrongSetting(f"{judged_in} names no relevant document for any question; without one there is no measure.")
    return LabelledCollection(
        name=name,
        split=judged_in.stem,
        documents=documents,
        questions=judged,
        judgements=judgements,
        unanswered=tuple(each for each in questions if each.id not in answered),
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
            raise WrongSetting(f"{file}, line {number}: {error}. Repair the line.") from error
        if read.id in first_seen:
            raise WrongSetting(
                f"{file}, line {number}: the id {read.id!r} is on line {first_seen[read.id]} already. "
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
                    yield number, line.removeprefix(BOM_UTF8)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise WrongSetting(f"{file} is not a whole gzip file: {error}. Fetch it again.") from error


def _qrels_file(folder: Path, split: str | None) -> Path:
    there = {file.stem: file for file in sorted((folder / "qrels").glob("*.tsv"))}
    if not there:
        raise WrongSetting(f"{folder / 'qrels'} holds no judgements; put a <split>.tsv there.")
    wanted = split or (DEFAULT_SPLIT if DEFAULT_SPLIT in there or len(there) > 1 else next(iter(there)))
    if wanted not in there:
        raise WrongSetting(f"{folder / 'qrels'} holds no {wanted}.tsv; choose one with --split: {', '.join(there)}.")
    return there[wanted]


def _read_judgements(
    file: Path, questions: Collection[str], documents: Collection[str] | None
) -> dict[str, dict[str, int]]:
    """Of any documents where these are not known."""
    judgements: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", errors="surrogateescape", newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = next(rows, [])
        if header != QRELS_HEADER:
            raise WrongSetting(f"{file} begins with {header}; its first line must be {' <tab> '.join(QRELS_HEADER)}.")
        for number, row in enumerate(rows, 2):
            if not row:
                continue
            try:
                question, document, grade = row[0], row[1], int(row[2])
            except (IndexError, ValueError) as error:
                raise WrongSetting(
                    f"{file}, line {number}: {row} is not query-id, corpus-id and a whole number. Repair the line."
                ) from error
            if question not in questions:
                raise _unknown(file, number, "question", question, "queries")
            if documents is not None and document not in documents:
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


CONTENT_TYPE = "text/plain"
HASH_DIGITS = 12
BATCH_DOCUMENTS = 200
BATCH_BYTES = 4 * 1024 * 1024
TIMEOUT_SECONDS = 120.0  # without progress
WAIT_SECONDS = 1.0
PAUSE_SECONDS = 1.0
MAX_SHOWN = 3

_NOT_IN_A_NAME = re.compile(r"[/\s\x00-\x1f\x7f]+")

Advance = Callable[[int], None]


class Corpus(msgspec.Struct, frozen=True):
    """`envelopes` is {document id in the service: envelope as JSON}; `unfilled` counts documents without text and
    title, which no search can find and which are not published."""

    collection: str
    envelopes: Mapping[str, bytes]
    unfilled: int


def corpus_of(collections: Sequence[LabelledCollection], pool: str | None = None) -> Corpus:
    """The corpus of one collection, or of several pooled under a name.

    Raises WrongSetting where an id or a name cannot be a document's key, or two pooled folders have the same name.
    """
    if pool is not None and len({each.name for each in collections}) < len(collections):
        raise WrongSetting("Two of the folders have the same name; rename one, so that their documents stay apart.")
    published = {
        served_id(each, document.id, pool): document
        for each in collections
        for document in each.documents
        if not document.is_empty
    }
    state = hashlib.sha256(CONTENT_TYPE.encode())
    for document_id, document in sorted(published.items()):
        state.update(msgspec.json.encode([document_id, *_fields(document).values()], order="deterministic"))
    name = _NOT_IN_A_NAME.sub("-", pool or collections[0].name)[: MAX_COLLECTION_CHARACTERS - HASH_DIGITS - 1]
    collection = f"{name}-{state.hexdigest()[:HASH_DIGITS]}"
    envelopes = {}
    for document_id, document in published.items():
        try:
            DocumentKey.checked(collection, document_id)
        except MalformedEvent as error:
            raise WrongSetting(f"The document {document.id!r} cannot be published: {error}") from error
        envelopes[document_id] = msgspec.json.encode(
            {"id": document_id, "collection": collection, "content_type": CONTENT_TYPE, **_fields(document)}
        )
    unfilled = sum(document.is_empty for each in collections for document in each.documents)
    return Corpus(collection, envelopes, unfilled)


def served_id(collection: LabelledCollection, document_id: str, pool: str | None) -> str:
    """A document's id in the service: its own; in a pool, where two folders may both have a `1`, after its folder's."""
    return document_id if pool is None else f"{collection.name}/{document_id}"


def _fields(document: LabelledDocument) -> dict[str, Any]:
    return {"title": document.title or None, "content": document.text or "", "metadata": document.metadata or {}}


def load(
    client: ServiceClient, corpus: Corpus, advance: Advance = lambda _: None, timeout_seconds: float = TIMEOUT_SECONDS
) -> Loaded:
    """Make the corpus searchable, text and graph; `advance` is called with the number of further documents that are.

    Safe to interrupt and to repeat: it sends what is not listed in the collection, and documents still on their way
    from an earlier load may be sent twice, which changes nothing. Raises WrongSetting when the collection holds what
    is not of this corpus or a document is refused, Failure when nothing is indexed for `timeout_seconds`.
    """
    began = time.monotonic()
    present = document_positions(client, corpus.collection)
    foreign = sorted(present.keys() - corpus.envelopes.keys())
    if foreign:
        raise WrongSetting(
            f"The collection {corpus.collection!r} holds {len(foreign)} documents that the folder does not, such as "
            f"{', '.join(foreign[:MAX_SHOWN])}: somebody else wrote to it. Delete them with 'thalweg delete', "
            f"or all with 'thalweg collections delete'."
        )
    missing = {document_id: body for document_id, body in corpus.envelopes.items() if document_id not in present}
    advance(len(present))
    token = merge_tokens(present.values())
    for batch in batches(missing):
        token = merge_tokens([str(token), _publish(client, batch, timeout_seconds)])
    if token.positions:
        _wait(client, corpus.collection, token, len(missing), advance, timeout_seconds)
    if missing:
        present = document_positions(client, corpus.collection)
    return Loaded(
        collection=corpus.collection,
        documents=len(present),
        sent=len(missing),
        missing=tuple(sorted(corpus.envelopes.keys() - present.keys())),
        token=str(token),
        seconds=round(time.monotonic() - began, 3),
    )


def already_loaded(client: ServiceClient, collection: str, labelled: LabelledCollection) -> Loaded:
    """A collection of the service as it is. Raises WrongSetting when it lacks a document that is judged."""
    began = time.monotonic()
    present = document_positions(client, collection)
    if not present:
        raise WrongSetting(f"The collection {collection!r} is empty, or there is none. Name another with --within.")
    judged = {document for grades in labelled.judgements.values() for document in grades}
    absent = sorted(judged - present.keys())
    if absent:
        raise WrongSetting(
            f"{len(absent)} judged documents are not in the collection {collection!r}, such as "
            f"{', '.join(absent[:MAX_SHOWN])}. Name the collection the questions are about, or leave --within out."
        )
    seconds = round(time.monotonic() - began, 3)
    return Loaded(collection=collection, documents=len(present), sent=0, missing=(), token="", seconds=seconds)


def batches(envelopes: Mapping[str, bytes]) -> Iterator[list[bytes]]:
    """The envelopes in their order, at most BATCH_DOCUMENTS and, but for a larger one alone, BATCH_BYTES at a time."""
    batch: list[bytes] = []
    size = 0
    for body in envelopes.values():
        if batch and (len(batch) == BATCH_DOCUMENTS or size + len(body) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(body)
        size += len(body)
    if batch:
        yield batch


def _publish(client: ServiceClient, batch: list[bytes], timeout_seconds: float) -> str:
    """The token of the batch once the log has all of it; retried while the log is unavailable."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        answer = client.publish(batch)
        refused = [each for each in answer["refused"] if each["status"] != 503]
        if refused:
            raise WrongSetting(
                f"{len(refused)} documents are refused, such as {refused[0]['id']!r}: {refused[0]['detail']} "
                "Repair or remove them in the corpus."
            )
        if not answer["refused"]:
            return str(answer["token"])
        if time.monotonic() > deadline:
            raise Failure(str(answer["refused"][0]["detail"]))
        time.sleep(PAUSE_SECONDS)


def _wait(
    client: ServiceClient, collection: str, wanted: Token, sent: int, advance: Advance, timeout_seconds: float
) -> None:
    """Until a search by the graph, which comes last, shows the positions `wanted`.

    The search is a retrieval like any other: one record on the provenance topic, once there is an answer. Progress is
    estimated from the offsets that are still to come.
    """
    search = {"q": "river", "mode": "graph", "k": 1, "collection": collection, "wait_seconds": WAIT_SECONDS}
    advanced, fewest = 0, None
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            client.get("/v1/search", {**search, "after": str(wanted)})
        except ServiceUnavailable as problem:
            left = _lag(wanted.positions, client.get("/v1/status")["positions"])
            if fewest is None or left < fewest:
                fewest, deadline = left, time.monotonic() + timeout_seconds
            advance(max(0, sent - left - advanced))
            advanced = max(advanced, sent - left)
            if time.monotonic() > deadline:
                raise Failure(
                    f"Nothing was indexed for {timeout_seconds:.0f} s, {left:,} records are waiting in Kafka, where "
                    f"they are safe. Is a worker running? See 'thalweg status'; the same command continues from here. "
                    f"({problem})"
                ) from problem
        else:
            advance(sent - advanced)
            return


def _lag(wanted: Mapping[int, int], reached_token: str | None) -> int:
    """Offsets between what is reached and what is wanted, other writers' records among them."""
    reached = merge_tokens([reached_token or ""]).positions
    return sum(max(0, offset - reached.get(partition, -1)) for partition, offset in wanted.items())
