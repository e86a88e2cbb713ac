"""Faults of a worker: its calls of stores and broker have names, and a chosen one is harmed.

Names are those of `CALLS`: `lance: write documents`, `graph: apply`, `send: dead-letters`, `snapshot: merge`. This
module knows where they are made, so that the product does not need to.
"""

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
from aiokafka.errors import KafkaConnectionError

ENVIRONMENT = "TORTURE_FAULT"
INSIDE_SECONDS = 0.01
FIRED = "fault: "

Harm = Literal["kill before", "kill inside", "kill after", "fail", "fail after", "fail on", "break"]

CALLS = (
    "send: dead-letters",
    "send: contributions",
    "send: mark",
    "lance: add passages",
    "lance: add chunks",
    "lance: write documents",
    "lance: delete stale passages",
    "lance: delete stale chunks",
    "lance: write positions",
    "send: indexed",
    "acknowledge",
    "graph: apply",
    "snapshot: merge",
    "snapshot: table",
    "snapshot: manifest",
    "snapshot: prune",
    "lance: keep the retrievals",
    "lance: optimise",
    "lance: record the files' checksums",
)
"""The numbered commit, the graph, its snapshots and maintenance, in the order of a record's life.
A process can be killed before, inside and after each."""


class Fault(msgspec.Struct, frozen=True):
    """Harms a call whose name begins with `at`, after so many others of it have passed.

    `fail`: the call is not made. `fail after`: it is made, and then fails. `fail on`: it fails from then
    on. `break`: it fails as no retry can help.
    """

    harm: Harm
    at: str = ""
    after: int = 0


class Broken(Exception):
    """What a store's bindings never say."""


class Faults:
    """Counts the calls of this process, from all its threads, and does the harm."""

    def __init__(self, fault: Fault | None) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self.made: Counter[str] = Counter()
        self._matching = 0

    @classmethod
    def from_environment(cls) -> "Faults":
        given = os.environ.get(ENVIRONMENT)
        return cls(msgspec.json.decode(given, type=Fault) if given else None)

    def begin(self, name: str, failure: Callable[[str], Exception]) -> Harm | None:
        """Before a call: the harm that is to be done to it after it. Raises, or ends the process, where it is not to be
        made."""
        harm = self._harm(name)
        if harm is None:
            return None
        report(f"{FIRED}{harm} {name}")
        if harm == "kill before":
            die()
        if harm == "kill inside":
            threading.Thread(target=die_soon, daemon=True).start()
        if harm in ("fail", "fail on"):
            raise failure(f"{harm} {name}")
        if harm == "break":
            raise Broken(f"{harm} {name}")
        return harm

    def end(self, harm: Harm | None, name: str, failure: Callable[[str], Exception]) -> None:
        if harm == "kill after":
            die()
        if harm == "fail after":
            raise failure(f"{harm} {name}")

    @contextmanager
    def during(self, name: str, failure: Callable[[str], Exception]) -> Iterator[None]:
        harm = self.begin(name, failure)
        yield
        self.end(harm, name, failure)

    def around(self, name: str, call: Callable[..., Any], failure: Callable[[str], Exception]) -> Callable[..., Any]:
        def harmed(*arguments: Any, **named: Any) -> Any:
            with self.during(name, failure):
                return call(*arguments, **named)

        return harmed

    def _harm(self, name: str) -> Harm | None:
        with self._lock:
            self.made[name] += 1
            fault = self._fault
            if fault is None or not name.startswith(fault.at):
                return None
            self._matching += 1
            due = self._matching - 1
        lasting = fault.harm == "fail on"
        return fault.harm if due == fault.after or (lasting and due > fault.after) else None


def report(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal is on its way


def die_soon() -> None:
    time.sleep(INSIDE_SECONDS)
    die()


def install(faults: Faults) -> None:
    """Give the calls of this process their names. Before anything of the stores or the worker is imported."""
    _name_lance_calls(faults)
    _name_graph_calls(faults)
    _name_broker_calls(faults)


def _name_lance_calls(faults: Faults) -> None:
    from indexer import lance_connection

    told = lance_connection.store_errors

    @contextmanager
    def store_errors(doing: str) -> Iterator[None]:
        name = f"lance: {doing.partition(' in ')[0]}"
        with told(doing), faults.during(name, OSError):
            yield

    lance_connection.store_errors = store_errors


def _name_graph_calls(faults: Faults) -> None:
    from indexer.graph import snapshot_publication, store
    from indexer.write import arrow_publication

    for module, function, name in (
        (store.GraphStore, "apply", "graph: apply"),
        (store, "merge", "snapshot: merge"),
        (arrow_publication, "stored_table", "snapshot: table"),
        (arrow_publication, "replace_file", "snapshot: manifest"),
        (snapshot_publication, "_prune", "snapshot: prune"),
    ):
        setattr(module, function, faults.around(name, getattr(module, function), OSError))


def _name_broker_calls(faults: Faults) -> None:
    from streams.agents import documents_agent as documents
    from streams.kafka import producer

    class Harmed:
        """Faust's producer; where a call is to end after it, it is confirmed first."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def send(self, topic: str, key: bytes | None, *record: Any) -> Any:
            name = f"send: {_kind(topic, key)}"
            harm = faults.begin(name, KafkaConnectionError)
            confirmation = await self._inner.send(topic, key, *record)
            if harm is not None:
                await confirmation
                faults.end(harm, name, KafkaConnectionError)
            return confirmation

    make = producer.ConfirmedProducer.__init__

    def make_harmed(self: producer.ConfirmedProducer, inner: Any, *others: Any, **named: Any) -> None:
        make(self, Harmed(inner), *others, **named)

    producer.ConfirmedProducer.__init__ = make_harmed  # type: ignore[method-assign]
    documents.mark_done = faults.around("acknowledge", documents.mark_done, RuntimeError)


def _kind(topic: str, key: bytes | None) -> str:
    """`contributions`, the `mark` that ends them, `indexed`, `dead-letters` or `curation`."""
    kinds = ("contributions", "indexed", "dead-letters", "curation")
    kind = next(each for each in kinds if f".{each}." in f".{topic}")
    return "mark" if kind == "contributions" and key is None else kind
