"""Stored documents linked again by a real worker: from the graph topic and the stored vectors, to the graph topic."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

from indexer.generations import current_generation
from query_api.encoder import load_encoder
from query_api.index.graph.view import GraphView
from query_api.index.snapshot import Snapshot
from query_api.index.text.snapshot import TextReader
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchSettings
from schemas.curation import (
    LinkingChoice,
    RelinkEvent,
    Relinking,
    decode_curation,
    encode_choice,
    linking_key,
    relink_key,
)
from schemas.graph_delta import Contribution, decode_contribution
from schemas.hits import Hit
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings
from tests.support.processes.worker import Client, WorkerProcess, client, running_worker, wait_for

TEXT = " ".join(f"Sentence {number} says that river {number} flows to the sea in its bed." for number in range(60))


async def contributed(user: Client, worker: WorkerProcess) -> dict[str, Contribution]:
    records = await user.read_all(worker.graph_topic, partitions=1)
    newest = {record.key.decode(): record.value for record in records}
    return {key: decode_contribution(value) for key, value in newest.items() if value is not None}


async def relinked(user: Client, order: str, worker: Any) -> Relinking:
    """The state of an order once it is done."""
    before = worker.said().count("linked again")
    await user.producer.send_and_wait(
        user.names.curation, encode_choice(Relinking()), key=relink_key("rivers", order), partition=0
    )
    await wait_for(lambda: worker.said().count("linked again") > before, "the order to be carried out")
    events = [decode_curation(one.key, one.value) for one in await user.read_all(user.names.curation, partitions=1)]
    [*_, last] = [event.state for event in events if isinstance(event, RelinkEvent) and event.id == order]
    assert last is not None
    return last


async def found_by_expansion(worker: WorkerProcess, graph: dict[str, Contribution]) -> dict[str, float]:
    """{passage: score} of a search of the stored texts and this graph, over edges between similar chunks alone."""
    generation = current_generation(worker.data_dir)
    assert generation is not None
    view = GraphView.from_contributions(graph.values(), 0)
    snapshot = Snapshot(generation.name, TextReader.open(generation).snapshot(), view, worker.prefix)
    request = SearchRequest(
        q="river 5 flows", collection="rivers", mode="graph", graph_method="expansion", edges=("similar_to",)
    )
    encoder = load_encoder(EmbeddingSettings(provider="hashing"), worker.data_dir)
    with ThreadPoolExecutor(1) as threads:
        parts = [part async for part in search(request, "r", snapshot, encoder, threads, SearchSettings())]
    return {part.passage_id: part.scores["graph"] for part in parts if isinstance(part, Hit)}


async def test_rules_reach_what_is_stored_and_come_back_to_where_they_were(kafka: str, tmp_path: Path) -> None:
    with running_worker(kafka, f"relink-{uuid4().hex[:8]}.", tmp_path / "data") as worker:
        async with client(kafka, worker.prefix) as user:
            keys = [f"rivers/{name}" for name in ("rhine", "elbe")] + ["seas/north"]
            await user.receipts_of(await user.publish_all([(key, TEXT) for key in keys]))
            before = await contributed(user, worker)
            found = await found_by_expansion(worker, before)
            assert await relinked(user, "same", worker) == Relinking(state="done", documents=2, of=2)
            assert await contributed(user, worker) == before
            choice = encode_choice(LinkingChoice(similar_above=0.0, similar=0.5))
            await user.producer.send_and_wait(user.names.curation, choice, key=linking_key("rivers"), partition=0)
            assert await relinked(user, "other", worker) == Relinking(state="done", documents=2, of=2, changed=2)
            after = await contributed(user, worker)
            similar = [edge for edge in after["rivers/rhine"].edges if edge.kind == "similar_to"]
            assert len(similar) == len(after["rivers/rhine"].chunks) - 1
            assert after["seas/north"] == before["seas/north"]
            beside = await found_by_expansion(worker, after)
            assert beside.keys() == found.keys()
            assert beside != found, "what a search finds follows the rules"
            again = await user.receipt(await user.publish("rivers/rhine", TEXT))
            assert again.outcome == "unchanged", "how a document is linked is no part of its revision"
            await user.producer.send_and_wait(user.names.curation, None, key=linking_key("rivers"), partition=0)
            assert (await relinked(user, "back", worker)).changed == 2
            assert await contributed(user, worker) == before
