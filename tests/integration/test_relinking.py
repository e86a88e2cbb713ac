"""Stored documents linked again by a real worker: from the log and the stored vectors, to the contributions topic."""

from concurrent.futures import ThreadPoolExecutor

from indexer.generation_folders import current_generation
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.text_snapshot import TextReader
from query_api.question_encoder import GuardedEncoder, load_encoder
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchSettings
from schemas.curation import LinkingChoice, decode_curation, encode_choice, linking_key
from schemas.graph_delta import Contribution
from schemas.hits import Hit
from schemas.orders import OrderEvent, Relinking, relink_key
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings
from tests.support.processes.worker import Client, WorkerProcess, client
from tests.support.waiting import wait_until

TEXT = " ".join(f"Sentence {number} says that river {number} flows to the sea in its bed." for number in range(60))


def contributed(user: Client, worker: WorkerProcess) -> dict[str, Contribution]:
    return {key: each for key, each in user.graph(worker).items() if "beds/" in key}


def relinked(user: Client, order: str, worker: WorkerProcess) -> Relinking:
    """The state of an order once it is done."""
    before = worker.said().count("order carried out")
    user.send(user.names.curation, relink_key("beds", order), encode_choice(Relinking()))
    wait_until(lambda: worker.said().count("order carried out") > before, "the order to be carried out")
    events = [decode_curation(one.key, one.value) for one in user.read_all(user.names.curation)]
    [*_, last] = [event.order for event in events if isinstance(event, OrderEvent) and event.id == order]
    assert isinstance(last, Relinking)
    return last


async def found_by_expansion(worker: WorkerProcess, graph: dict[str, Contribution]) -> dict[str, float]:
    """{passage: score} of a search of the stored texts and this graph, over edges between similar chunks alone."""
    generation = current_generation(worker.data_dir)
    assert generation is not None
    view = GraphView.from_contributions(graph.values(), 0)
    snapshot = Snapshot(generation.name, TextReader.open(generation).snapshot(), view, worker.prefix)
    request = SearchRequest(
        q="river 5 flows", collection="beds", mode="graph", graph_method="expansion", edges=("similar_to",)
    )
    encoder = GuardedEncoder(load_encoder(EmbeddingSettings(provider="hashing"), worker.data_dir))
    with ThreadPoolExecutor(1) as threads:
        parts = [part async for part in search(request, "r", snapshot, encoder, threads, SearchSettings())]
    return {part.passage_id: part.scores["graph"] for part in parts if isinstance(part, Hit)}


async def test_relinking_applies_new_rules_and_the_former_ones_again(worker: WorkerProcess) -> None:
    with client(worker.kafka, worker.prefix) as user:
        keys = [f"beds/{name}" for name in ("rhine", "elbe")] + ["sea-beds/north"]
        user.receipts_of(user.publish_all([(key, TEXT) for key in keys]))
        before = contributed(user, worker)
        found = await found_by_expansion(worker, before)
        assert relinked(user, "same", worker) == Relinking(state="done", documents=2, of=2)
        assert contributed(user, worker) == before
        choice = encode_choice(LinkingChoice(similar_above=0.0, similar=0.5))
        user.send(user.names.curation, linking_key("beds"), choice)
        assert relinked(user, "other", worker) == Relinking(state="done", documents=2, of=2, changed=2)
        after = contributed(user, worker)
        similar = [edge for edge in after["beds/rhine"].edges if edge.kind == "similar_to"]
        assert len(similar) == len(after["beds/rhine"].chunks) - 1
        assert after["sea-beds/north"] == before["sea-beds/north"]
        beside = await found_by_expansion(worker, after)
        assert beside.keys() == found.keys()
        assert beside != found, "what a search finds follows the rules"
        again = user.receipt(user.publish("beds/rhine", TEXT))
        assert again.outcome == "unchanged", "how a document is linked is no part of its revision"
        user.send(user.names.curation, linking_key("beds"), None)
        assert (relinked(user, "back", worker)).changed == 2
        assert contributed(user, worker) == before
