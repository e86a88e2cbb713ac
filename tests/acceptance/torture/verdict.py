"""The one verdict on a round: what the log says is in the stores, once, and nothing else."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from indexer.generation_folders import Generation, current_generation
from indexer.lance_connection import connect
from indexer.read.lance_reader import LanceReader
from indexer.schema import RETRIEVALS
from indexer.store_verification import VerifyReport, verify_when_complete
from schemas.dead_letters import CONNECT_PREFIX, REASON_HEADER
from schemas.ids import DocumentKey
from schemas.receipts import decode_receipt
from schemas.topics import TopicNames
from tests.acceptance.torture.stream import NUMBER_HEADER, REFUSED, Expected, Stream, expected
from tests.support.kafka import read_all

STILL_SECONDS = 45.0  # longer than a start of the worker
SNAPSHOT_SECONDS = 120.0
LOOK_SECONDS = 1.0
SHOWN = 5

Place = tuple[int, int]
Case = TypeVar("Case")


@dataclass
class Verdict:
    """`findings` are sentences; none means that the promises were kept."""

    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    digest: str = ""

    def find(self, what: str, cases: Sequence[object]) -> None:
        if cases:
            shown = "; ".join(map(str, cases[:SHOWN]))
            more = f"; and {len(cases) - SHOWN} more" if len(cases) > SHOWN else ""
            self.findings.append(f"{len(cases)} {what}: {shown}{more}")


class Ledger:
    """What the receipts of a generation say of each record of the log."""

    def __init__(self, servers: str, names: TopicNames, log: Sequence[Any]) -> None:
        self._servers = servers
        self._names = names
        self.places = {(each.partition, each.offset) for each in log}

    def outcomes(self, generation: str) -> dict[Place, set[str]]:
        found: dict[Place, set[str]] = defaultdict(set)
        for record in read_all(self._servers, self._names.indexed):
            receipt = decode_receipt(record.value)
            if receipt.generation == generation:
                found[receipt.partition, receipt.offset].add(receipt.outcome)
        return found

    def missing(self, data_dir: Path) -> list[Place]:
        generation = current_generation(data_dir)
        told = self.outcomes(generation.name) if generation is not None else {}
        return sorted(self.places - told.keys())

    def wait(self, data_dir: Path, tend: Callable[[], None]) -> list[Place]:
        """Until every record has its receipt; those that have none."""
        return left_over(lambda: self.missing(data_dir), tend)


def left_over(missing: Callable[[], list[Case]], tend: Callable[[], None]) -> list[Case]:
    """What is still missing when nothing is, or when no more of it comes."""
    left, changed = missing(), time.monotonic()
    while left and time.monotonic() < changed + STILL_SECONDS:
        tend()
        time.sleep(LOOK_SECONDS)  # each look reads a topic, and the worker needs the processor
        before, left = left, missing()
        changed = changed if len(left) == len(before) else time.monotonic()
    return left


def judge(servers: str, names: TopicNames, data_dir: Path, stream: Stream, tend: Callable[[], None]) -> Verdict:
    """On the live generation of a data directory whose worker runs. Calls `tend` while it waits.

    1. nothing that was confirmed is missing in the log; 2. every record has a receipt of what the oracle allows;
    3. the poison and nothing else is in the dead letters, as it came; 4. every retrieval is in its table, once;
    5. documents, titles and versions are the oracle's; no row is there twice or without its document; 6. the stores
    agree with their checksums and with each other.
    """
    verdict = Verdict()
    log = read_all(servers, names.documents)
    wanted = expected(log, stream.made)
    numbers = {int(dict(each.headers)[NUMBER_HEADER]) for each in log}
    verdict.counts["records"] = len(log)
    verdict.find("confirmed records are not in the log", sorted(stream.confirmed - numbers))  # 1
    ledger = Ledger(servers, names, log)
    lost = ledger.wait(data_dir, tend)  # 2
    verdict.find("records were lost", lost)
    if lost:
        return verdict
    generation = current_generation(data_dir)
    assert generation is not None
    told = ledger.outcomes(generation.name)
    verdict.find("receipts are not what the log means", list(_wrong_receipts(told, wanted)))
    verdict.find("dead letters are not what the log means", list(_wrong_letters(servers, names, told, wanted)))  # 3
    verdict.find("retrievals were lost", left_over(lambda: _missing_retrievals(servers, names, generation), tend))  # 4
    verdict.find("retrievals are there more than once", _repeated(_retrievals(generation)))
    verdict.find("documents are not the oracle's", list(_wrong_documents(generation, wanted)))  # 5
    verdict.find("rows are there twice, or without their document", list(_wrong_rows(generation)))
    report = verify_when_complete(data_dir, SNAPSHOT_SECONDS)  # 6
    verdict.find("faults are told by verify", faults(report))
    verdict.digest = report.digest
    verdict.counts |= {"documents": report.documents, "dead letters": len(wanted.poison)}
    return verdict


def faults(report: VerifyReport) -> list[str]:
    """Of stores that nobody writes to just now."""
    found = [*report.differences, *report.damage]
    found += ["the graph does not hold all of the text"] * (not report.complete)
    found += [f"{report.stale_rows} rows of replaced revisions"] * bool(report.stale_rows)
    return found


def _wrong_receipts(told: dict[Place, set[str]], wanted: Expected) -> Iterator[str]:
    for place, allowed in sorted(wanted.receipts.items()):
        said = told.get(place, set())
        is_last = "superseded" not in allowed
        fits = bool(said & allowed) if is_last else said <= allowed
        if not fits or "dead_lettered" in said - allowed:
            yield f"{place} was {sorted(said)}, of {sorted(allowed)}"


def _wrong_letters(servers: str, names: TopicNames, receipts: dict[Place, set[str]], wanted: Expected) -> Iterator[str]:
    told: set[Place] = set()
    for letter in read_all(servers, names.dead_letters):
        headers = dict(letter.headers)
        place = letter.partition, int(headers[f"{CONNECT_PREFIX}offset"])
        told.add(place)
        poison = wanted.poison.get(place)
        if poison is None:
            yield f"{place} is no poison, and refused for {headers[REASON_HEADER]!r}"
        elif (letter.key, letter.value, headers[REASON_HEADER].decode()) != (
            poison.key.encode(),
            poison.value,
            poison.reason,
        ):
            yield f"{place} is not as it came, or refused for {headers[REASON_HEADER]!r} instead of {poison.reason!r}"
    replaced = {place for place in wanted.poison if "dead_lettered" not in receipts.get(place, REFUSED)}
    for place in sorted(wanted.poison.keys() - told - replaced):
        yield f"{place}, {wanted.poison[place].reason}, is missing"


def _retrievals(generation: Generation) -> list[str]:
    table = connect(generation.lance_dir).open_table(RETRIEVALS)
    return list(table.search().select(["retrieval_id"]).to_arrow()["retrieval_id"].to_pylist())


def _missing_retrievals(servers: str, names: TopicNames, generation: Generation) -> list[str]:
    made = {record.key.decode() for record in read_all(servers, names.provenance)}
    return sorted(made - set(_retrievals(generation)))


def _repeated(values: Sequence[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]


def _wrong_documents(generation: Generation, wanted: Expected) -> Iterator[str]:
    keys = [DocumentKey.parse(key) for key in wanted.outcome.documents]
    rows = {str(row.key): row for row in LanceReader.open(generation).snapshot().documents(keys)}
    for key, document in sorted(wanted.outcome.documents.items()):
        row = rows.get(key)
        found = (row.title if row.live else None, row.version) if row is not None else None
        if found != (document.text, document.version):
            yield f"{key} is {found} instead of {(document.text, document.version)}"


def _wrong_rows(generation: Generation) -> Iterator[str]:
    rows = LanceReader.open(generation).snapshot().content_rows()
    documents = rows.documents.to_pylist()
    yield from _repeated([row["key"] for row in documents])
    live = {(row["key"], row["revision"]) for row in documents}
    for table in (rows.passages, rows.chunks):
        found = table.select(["row", "key", "revision"]).to_pylist()
        yield from _repeated([row["row"] for row in found])
        yield from (f"{row['row']} of {row['key']}" for row in found if (row["key"], row["revision"]) not in live)
