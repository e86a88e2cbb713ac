"""Cypher on the published graph, read-only, with the rights of the user who runs this.

Read-only Kùzu still reads and writes other files (`LOAD FROM`, `COPY … TO`), and loads extensions: it is asked nothing
on behalf of anybody else. It runs in a child process, since some queries look at no clock, and some crash it.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from schemas.errors import Failure, WrongSetting

GRACE_SECONDS = 5.0  # for the start of the child process, and for Kùzu to notice that its time is over
ANSWER = "answer.json"

_OF_THE_QUERY = ("Parser exception", "Binder exception", "Catalog exception", "Function exception")
_OUT_OF_MEMORY = ("std::bad_alloc", "Buffer manager exception")
_INTERNAL = ("_id", "_src", "_dst")


class Question(msgspec.Struct, frozen=True):
    """`file` is a name of Kùzu's file in a folder that may be written to: Kùzu writes beside it even for a CHECKPOINT
    that it refuses."""

    file: str
    cypher: str
    limit: int
    timeout_seconds: float
    buffer_bytes: int


class Answer(msgspec.Struct, frozen=True):
    """`rows` are the first of `total`, with values of JSON: nodes, relationships and paths are objects, with the label
    under `_label`. With a `problem`, Kùzu's sentence, there are none."""

    columns: list[str] = []
    rows: list[list[Any]] = []
    total: int = 0
    problem: str = ""


def ask(file: Path, cypher: str, *, limit: int, timeout_seconds: float, buffer_bytes: int) -> Answer:
    """The answer to one statement. Raises WrongSetting for what Kùzu refuses, Failure for what it cannot answer."""
    with TemporaryDirectory(prefix="thalweg-cypher-") as folder:
        link = Path(folder, file.name)
        link.symlink_to(file.absolute())
        question = Question(str(link), cypher, limit, timeout_seconds, buffer_bytes)
        with subprocess.Popen(
            [sys.executable, "-m", "indexer.read.cypher"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        ) as child:
            try:
                _, errors = child.communicate(msgspec.json.encode(question), timeout_seconds + GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                raise _too_slow(timeout_seconds) from None
            finally:
                child.kill()
                child.wait()
        if child.returncode != 0:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise Failure("Kùzu crashed on this query; rephrase it." + "".join(f" {line}" for line in lines[-1:]))
        answer = Answer(**json.loads(Path(folder, ANSWER).read_bytes()))  # which reads whole numbers of any size
    if answer.problem:
        raise _explained(answer.problem, timeout_seconds)
    return answer


def _explained(problem: str, timeout_seconds: float) -> Failure:
    if problem.startswith("Interrupted"):
        return _too_slow(timeout_seconds)
    if problem.startswith(_OF_THE_QUERY) or "Query is empty" in problem:
        return WrongSetting(f"Kùzu does not understand this query. {problem}")
    if "read-only" in problem:
        return WrongSetting(
            "The published graph is only read: Thalweg makes it of the documents. 'thalweg load' puts documents in, "
            "'thalweg graph' nodes and edges."
        )
    if problem.startswith(_OUT_OF_MEMORY):
        return Failure("The answer takes more memory than a query may use. Ask for less at a time.")
    return Failure(f"Kùzu could not answer. {problem}")


def _too_slow(timeout_seconds: float) -> Failure:
    return Failure(f"No answer after {timeout_seconds:g} s. Ask for less, or give it more time with --timeout.")


def _answer(question: Question) -> Answer:
    import kuzu  # in the child process only

    from indexer.graph.kuzu_schema import MAX_DATABASE_BYTES

    with (
        kuzu.Database(
            question.file, read_only=True, buffer_pool_size=question.buffer_bytes, max_db_size=MAX_DATABASE_BYTES
        ) as database,
        kuzu.Connection(database) as connection,
    ):
        connection.set_query_timeout(max(1, round(1_000 * question.timeout_seconds)))
        found = connection.execute(question.cypher)
        results = found if isinstance(found, list) else [found]
        try:
            if len(results) > 1:
                return Answer(problem="Binder exception: Ask one statement at a time.")
            rows = [_plain(row) for row in results[0].get_n(question.limit)]
            return Answer(results[0].get_column_names(), rows, results[0].get_num_tuples())
        finally:
            for result in results:
                result.close()  # one that is left when the database is closed crashes the process


def _plain(value: Any) -> Any:
    """Without the properties that a node in a path lacks, and without Kùzu's numbers of rows, which mean nothing
    outside of the file; what a relationship joins is in its path."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    hidden = _INTERNAL if "_label" in value else ()
    return {
        name: _plain(each)
        for name, each in value.items()
        if name not in hidden and not (each is None and "_label" in value)
    }


def main() -> None:
    """The child process: a question on standard input, its answer in a file beside the graph's name."""
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=Question)
    try:
        answer = _answer(question)
    except RuntimeError as error:
        answer = Answer(problem=str(error))
    encoded = msgspec.json.Encoder(decimal_format="number").encode(answer)
    Path(question.file).with_name(ANSWER).write_bytes(encoded)


if __name__ == "__main__":
    main()
