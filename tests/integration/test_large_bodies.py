"""Bodies that hold very many members, put to the service as a process: it refuses them, and answers others meanwhile.

Times are bounds that only the decoding of all members breaks (a MiB of `{}` took seconds, and 60 times its size);
`python -m tests.bench.bodies` measures them, up to 64 MiB.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.bench.bodies import JSON, empty_objects, envelope_of_empty_lists, full_batch, metadata_of_empty_lists
from tests.support.processes.query_service import MIB, Probe, ServiceProcess, service_process
from tests.support.waiting import wait_until

OTHERS_WAIT_SECONDS = 8.0  # a busy machine takes two
KEPT_BYTES = 100 * MIB
LIMITS = {"query_api.app.MAX_REQUEST_BYTES": 16 * MIB, "query_api.app.REQUEST_BYTES_AT_ONCE": 32 * MIB}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("service")
    with service_process(folder / "data", constants=LIMITS) as process:
        with process.client() as http:  # what the first request of a kind loads is no growth
            http.post("/v1/documents", content=empty_objects(MIB), headers=JSON)
        yield process


@pytest.mark.parametrize(
    ("make", "status"),
    [(empty_objects, 422), (envelope_of_empty_lists, 413), (metadata_of_empty_lists, 413), (full_batch, 503)],
)
def test_a_body_of_very_many_members_holds_nobody_up(
    service: ServiceProcess, make: Callable[[int], bytes], status: int
) -> None:
    before = service.resident_bytes
    with service.client() as http, Probe(service) as probe:
        for size in (MIB, 4 * MIB, 16 * MIB):
            answer = http.post("/v1/documents", content=make(size), headers=JSON)
            assert answer.status_code == status
            assert answer.headers["content-type"] == "application/problem+json"
            assert len(answer.content) < MIB
    assert probe.slowest_seconds < OTHERS_WAIT_SECONDS
    assert probe.most_bytes - before < 6 * 16 * MIB
    wait_until(lambda: service.resident_bytes - before < KEPT_BYTES, lambda: f"{service.resident_bytes // MIB} MiB")


def test_a_form_of_very_many_parts_holds_nobody_up(service: ServiceProcess) -> None:
    def parts(count: int, named: str) -> bytes:
        part = b'--cut\r\nContent-Disposition: form-data; name="x"%s\r\n\r\n\r\n' % named.encode()
        return part * count + b"--cut--\r\n"

    with service.client() as http, Probe(service) as probe:
        for body in (
            parts(100_000, '; filename="a.md"'),
            parts(100_000, ""),
            b"\r\n--cu" * MIB,
            b"--cut\r\nA: b" * MIB,
        ):
            answer = http.post(
                "/v1/documents", content=body, headers={"Content-Type": "multipart/form-data; boundary=cut"}
            )
            assert answer.status_code in {400, 422}
    assert probe.slowest_seconds < OTHERS_WAIT_SECONDS


def test_bodies_at_once_are_bounded_together(service: ServiceProcess) -> None:
    before = service.resident_bytes
    body = full_batch(16 * MIB)

    def post(_: int) -> httpx.Response:
        with service.client() as http:
            return http.post("/v1/documents", content=body, headers=JSON)

    with Probe(service) as probe, ThreadPoolExecutor(12) as callers:
        answers = list(callers.map(post, range(12)))
    assert {answer.status_code for answer in answers} == {503}  # no Kafka, or no room
    refused = [answer for answer in answers if answer.json()["title"] != "Document refused"]
    assert refused
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    assert probe.slowest_seconds < OTHERS_WAIT_SECONDS
    assert probe.most_bytes - before < 6 * 32 * MIB
    wait_until(lambda: service.resident_bytes - before < KEPT_BYTES, lambda: f"{service.resident_bytes // MIB} MiB")
