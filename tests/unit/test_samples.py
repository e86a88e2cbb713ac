"""The sample of a graph made by hand is what its README says."""

from collections import Counter
from pathlib import Path

from schemas.events import decode_envelope, upsert_from_envelope
from schemas.graph_documents import Made, read_made
from schemas.graph_edits import EdgeEdit, NodeEdit
from schemas.settings import LimitSettings

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"
ANSWER, BETWEEN, ASKED_ABOUT = "thirza-munn", "engine-d6", "fulmar"


def islands() -> list[Made]:
    found = []
    for line in (SAMPLES / "islands.jsonl").read_bytes().splitlines():
        upsert = upsert_from_envelope(decode_envelope(line, LimitSettings()), LimitSettings())
        made = read_made(upsert.key, upsert.content_type, upsert.content)
        assert made is not None, upsert.key
        found.append(made)
    return found


def test_islands_have_forty_nodes_and_edges_of_thirteen_kinds() -> None:
    nodes = {name: made for name, made in islands() if isinstance(made, NodeEdit)}
    edges = [made for _, made in islands() if isinstance(made, EdgeEdit)]
    assert (len(nodes), len(edges), len({each.predicate for each in edges})) == (40, 120, 13)
    assert all(node.text for node in nodes.values())
    assert {end for each in edges for end in (each.source, each.target)} == set(nodes)
    assert (SAMPLES / "islands.jsonl").stat().st_size < 60_000


def test_node_that_resembles_nothing_is_two_edges_away() -> None:
    edges = [made for _, made in islands() if isinstance(made, EdgeEdit)]
    degree = Counter(end for each in edges for end in (each.source, each.target))
    assert degree[ANSWER] == 1
    joined = {(each.source, each.target) for each in edges}
    assert {(ASKED_ABOUT, BETWEEN), (BETWEEN, ANSWER)} <= joined


def test_questions_about_the_islands_name_nodes() -> None:
    header, *lines = (SAMPLES / "islands.tsv").read_text().splitlines()
    wanted = [line.split("\t")[1].removeprefix("node:") for line in lines]
    assert (header, len(set(wanted))) == ("question\tdocuments", 10)
    assert set(wanted) <= {made.id for made in islands()}
