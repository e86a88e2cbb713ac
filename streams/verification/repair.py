"""`thalweg verify --repair`: what does not agree is ordered of the worker, which alone writes to the stores."""

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from indexer.generation_folders import Generation, generations, new_generation_name, read_build, require_room
from indexer.integrity.noted_damage import read_damage
from indexer.store_verification import VerifyReport
from schemas.curation import decode_curation, encode_choice
from schemas.errors import Failure
from schemas.generations import GenerationOrder, generation_key
from schemas.ids import DocumentKey
from schemas.orders import MOST_DOCUMENTS, REPAIR, OrderEvent, Repair, order_key
from schemas.runtime import read_state
from schemas.settings import KafkaConnection
from schemas.topics import TopicNames
from streams.generations.healing import REASON
from streams.kafka.order_log import follow_order, send_order
from streams.verification.ledger import LedgerReport
from streams.verification.sample import SampleReport

SILENT_SECONDS = 15.0
BEGIN_SECONDS = 180.0  # a start of the worker on a busy machine


class RepairPlan(NamedTuple):
    """What is to be made again from the log: documents, the graph, or all stores."""

    documents: Sequence[str] = ()
    graph: bool = False
    stores: bool = False

    @classmethod
    def of(cls, report: VerifyReport, ledger: LedgerReport | None, sample: SampleReport | None) -> "RepairPlan":
        """What the reports name. More documents than one order takes are all stores. Damaged files are none of these:
        the worker repairs them automatically."""
        parts = (report.documents_that_differ, ledger.documents if ledger else (), sample.keys if sample else ())
        documents = sorted({key for part in parts for key in part})
        if len(documents) > MOST_DOCUMENTS:
            return cls(stores=True)
        return cls(documents, graph=report.graph_differs)

    def __bool__(self) -> bool:
        return bool(self.documents or self.graph or self.stores)


class Orders:
    """To the worker that runs a generation."""

    def __init__(self, connection: KafkaConnection, prefix: str, generation: Generation) -> None:
        """Raises Failure where nobody would carry them out."""
        self._connection = connection
        self._topic = TopicNames(prefix).curation
        self._generation = generation
        require_worker(generation.data_dir)
        if (noted := read_damage(generation)) is not None:
            raise Failure(noted.sentence())

    def rebuild(self) -> str:
        """Order the next generation; its name. Raises Failure while another is built, or where there is no room."""
        live = self._generation
        for other in generations(live.data_dir):
            build = read_build(other)
            if other.name != live.name and build is not None and build.state == "building":
                raise Failure(
                    f"Generation {other.name} is being built, which makes all stores again: wait for it "
                    f"('thalweg generations show {other.name}'), or drop it."
                )
        require_room(live)
        name = new_generation_name(live.data_dir)
        order = GenerationOrder(wanted="live", base=live.name, reason=REASON)
        send_order(self._connection, self._topic, generation_key(name), encode_choice(order))
        return name

    def repair(self, documents: Iterable[str], *, graph: bool, show: Callable[[Repair], None]) -> Repair:
        """Order it and follow it to its end. Raises Failure where no worker begins, or continues."""
        key = order_key(REPAIR, secrets.token_hex(6))
        repair = Repair(generation=self._generation.name, documents=sorted(set(documents)), graph=graph)
        offset = send_order(self._connection, self._topic, key, encode_choice(repair))
        deadline = time.monotonic() + BEGIN_SECONDS
        seen_at = time.monotonic()
        for value in follow_order(self._connection, self._topic, key, offset):
            event = None if value is None else decode_curation(key, value)
            if isinstance(event, OrderEvent) and isinstance(event.order, Repair):
                repair = event.order
                show(repair)
            if repair.state == "done":
                break
            now = time.monotonic()
            seen_at = now if event is not None or is_running(self._generation.data_dir) else seen_at
            if now > (deadline if repair.state == "ordered" else seen_at + BEGIN_SECONDS):
                raise Failure(
                    f"The repair is ordered, and no worker of generation {repair.generation} "
                    f"{'has begun it' if repair.state == 'ordered' else 'continues it'}; it is carried out when one "
                    "does. 'thalweg status' shows the worker's state."
                )
        return repair


def is_running(data_dir: Path) -> bool:
    """Whether a worker has said within seconds that it runs on the data directory."""
    state = read_state(data_dir)
    is_alive = state is not None and state.phase in ("starting", "running")
    return state is not None and is_alive and time.time() - state.at_ms / 1000 <= SILENT_SECONDS


def require_worker(data_dir: Path) -> None:
    """Raises Failure where no worker runs on the data directory."""
    if not is_running(data_dir):
        raise Failure(
            f"No worker runs on {data_dir}, and only the worker writes to the stores: start it with 'thalweg up' or "
            "'thalweg worker', and repeat this."
        )


def require_keys(documents: Iterable[str]) -> None:
    """Raises Failure for what names no document."""
    for name in documents:
        try:
            DocumentKey.parse(name)
        except ValueError as error:
            raise Failure(f"{name[:80]!r} names no document: write collection/id. {error}") from error
