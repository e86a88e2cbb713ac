"""`python -m tests.bench.bodies`: what bodies that hold very many members do to the service, by size.

First what `/livez` takes while nothing else is asked, which is the machine's own noise. For each body: the answer, how
long it took, the slowest `/livez` meanwhile, and the service's memory before, at most and after.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.bench import commit, machine, say
from tests.support.processes.query_service import MIB, Probe, ServiceProcess, service_process

QUIET_SECONDS = 10
JSON = {"Content-Type": "application/json"}
SIZES_MIB = (0.25, 1, 4, 16, 64)


def empty_objects(size: int) -> bytes:
    return b"[" + b"{}," * ((size - 4) // 3) + b"{}]"


def envelope_of_empty_lists(size: int) -> bytes:
    return b'{"id":"a","content":"x","junk":[' + b"[]," * ((size - 40) // 3) + b"[]]}"


def metadata_of_empty_lists(size: int) -> bytes:
    return b'[{"id":"a","content":"x","metadata":{"a":[' + b"[]," * ((size - 60) // 3) + b"[]]}}]"


def one_long_text(size: int) -> bytes:
    return b'{"id":"a","content":"' + b"\\n" * ((size - 40) // 2) + b'"}'


def full_batch(size: int) -> bytes:
    each = size // 1_000 - 40
    return b"[" + b",".join(b'{"id":"%06d","content":"%s"}' % (n, b"word " * (each // 5)) for n in range(1_000)) + b"]"


KINDS: tuple[Callable[[int], bytes], ...] = (
    empty_objects,
    envelope_of_empty_lists,
    metadata_of_empty_lists,
    one_long_text,
    full_batch,
)


def measured(service: ServiceProcess, body: bytes) -> dict[str, float | int | str]:
    before = service.resident_bytes
    with service.client() as http, Probe(service) as probe:
        begun = time.perf_counter()
        answer = http.post("/v1/documents", content=body, headers=JSON)
        seconds = time.perf_counter() - begun
    return {
        "mib": round(len(body) / MIB, 2),
        "status": answer.status_code,
        "answer_bytes": len(answer.content),
        "seconds": round(seconds, 3),
        "slowest_livez_seconds": round(probe.slowest_seconds, 3),
        "before_mib": before // MIB,
        "most_mib": probe.most_bytes // MIB,
        "after_mib": service.resident_bytes // MIB,
        "detail": answer.json().get("detail", "")[:160],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=float, nargs="*", default=SIZES_MIB)
    parser.add_argument("--kind", nargs="*", default=[kind.__name__ for kind in KINDS])
    asked = parser.parse_args()
    found: dict[str, list[dict[str, float | int | str]]] = {}
    with tempfile.TemporaryDirectory() as folder, service_process(Path(folder) / "data") as service:
        with Probe(service) as probe:
            time.sleep(QUIET_SECONDS)
        quiet = round(probe.slowest_seconds, 3)
        say(f"quiet: slowest /livez {quiet} s of {probe.answers}")
        for kind in KINDS:
            for size in asked.mib if kind.__name__ in asked.kind else ():
                row = measured(service, kind(int(size * MIB)))
                found.setdefault(kind.__name__, []).append(row)
                say(f"{kind.__name__}: {row}")
    print(json.dumps({"machine": machine(), "commit": commit(), "quiet_livez_seconds": quiet, "bodies": found}))


if __name__ == "__main__":
    main()
