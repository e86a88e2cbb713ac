"""`thalweg graph show`: found by id or name, drawn by kind with strengths, some levels deep."""

import io
import json
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from rich.console import Console
from typer.testing import CliRunner

from query_api.cli import graph
from query_api.cli.display import node_tree
from query_api.cli.graph_tree import Explorer, find_node
from query_api.client import ServiceClient
from schemas.errors import Exit, Failure, WrongSetting

COLLECTION = "company"


def node(identifier: str, kind: str = "entity", **more: Any) -> dict[str, Any]:
    return {
        "id": identifier, "kind": kind, "label": identifier.title(), "collection": COLLECTION, "document_id": None,
        "type": None,
    } | more  # fmt: skip


def edge(source: str, target: str, kind: str, weight: float, label: str | None = None) -> dict[str, Any]:
    return {"from": source, "to": target, "kind": kind, "weight": weight, "label": label}


BEACON, KAFKA, ANN, OWNER = node("beacon"), node("kafka"), node("ann"), node("petrel", "hand_made", type="team")
CHUNK = node("c1", "chunk", label="Beacon requires\x1b[31m [b]Kafka", document_id="beacon.md")
EDGES = {
    "beacon": [
        (CHUNK, edge("c1", "beacon", "mentions", 3)),
        (KAFKA, edge("beacon", "kafka", "states", 0.9, "requires")),
        (node("disk"), edge("beacon", "disk", "states", 0.6, "requires")),
        (KAFKA, edge("beacon", "kafka", "states", 0.4, "requires")),
        (ANN, edge("ann", "beacon", "states", 0.8, "maintains")),
        (OWNER, edge("petrel", "beacon", "hand_made", 0.5, "owns")),
    ],
    "kafka": [
        (BEACON, edge("beacon", "kafka", "states", 0.9, "requires")),
        (ANN, edge("ann", "kafka", "states", 0.7, "knows")),
        *[(node(f"n{each}"), edge("kafka", f"n{each}", "states", 0.6, "uses")) for each in range(9)],
    ],
    "ann": [], "petrel": [], "c1": [],
}  # fmt: skip
STATEMENTS = [
    {
        "subject": BEACON, "predicate": "requires", "object": KAFKA, "further": [],
        "evidence": [{"sentence": None}, {"sentence": "Beacon [really] requires Kafka."}],
    },
]  # fmt: skip


class Service:
    """A graph of a few nodes; only its collection has them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.candidates: list[dict[str, Any]] = []
        self.is_ambiguous = False
        """Whether `ann` is in another collection too."""

    @property
    def client(self) -> ServiceClient:
        return ServiceClient("http://127.0.0.1:1", None, httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path, params = request.url.path, request.url.params
        self.asked.append(f"{path} {params.get('collection')} {params.get('kinds')}")
        name = unquote(path.rpartition("/")[2])
        if path == "/v1/entities":
            return httpx.Response(200, json={"entities": self.candidates, "next_cursor": None})
        if path.startswith("/v1/entities/"):
            return httpx.Response(200, json={"statements": STATEMENTS})
        if name == "ann" and "collection" not in params and self.is_ambiguous:
            detail = "A node 'ann' is in 2 collections; name one of them as `collection`: company, other."
            return httpx.Response(422, json={"title": "Several collections", "detail": detail})
        if params.get("collection", COLLECTION) != COLLECTION or name not in EDGES:
            return httpx.Response(404, json={"title": "No such node", "detail": f"Nothing is named {name!r}."})
        neighbours = [{"node": other, "edge": each} for other, each in EDGES[name]]
        here = next(each for each in (BEACON, KAFKA, ANN, OWNER, CHUNK) if each["id"] == name)
        return httpx.Response(200, json={"node": here, "neighbours": neighbours, "truncated": name == "kafka"})


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service()
    monkeypatch.setattr(graph, "service_client", lambda url, data_dir: made.client)
    return made


def run(*arguments: str, exit_code: int = Exit.OK) -> str:
    result = CliRunner().invoke(graph.app, ["graph", *arguments])
    assert result.exit_code == exit_code, result.output
    return result.output


def words(output: str) -> str:
    """Without the frame of an error."""
    return " ".join(output.replace("│", " ").split())


DRAWN = """\
Beacon  entity  beacon  company
├── ← mentions
│   └── 3 times  “Beacon requires\\x1b[31m [b]Kafka…”  chunk beacon.md
├── → requires
│   ├── 0.90  Kafka  entity
│   │   ├── “Beacon [really] requires Kafka.”
│   │   ├── ← knows
│   │   │   └── 0.70  Ann  entity
│   │   ├── → uses
│   │   │   ├── 0.60  N0  entity
│   │   │   ├── 0.60  N1  entity
│   │   │   └── … 7 more
│   │   └── … and more edges than were read
│   └── 0.60  Disk  entity
├── ← maintains
│   └── 0.80  Ann  entity
└── ← owns
    └── 0.50  Petrel  team
"""


@pytest.mark.parametrize("given", [("show", "beacon"), ("beacon",)])
def test_a_node_is_drawn_with_its_edges_by_kind(service: Service, given: tuple[str, ...]) -> None:
    assert run(*given, "--collection", COLLECTION, "--evidence") == DRAWN


def test_each_node_is_asked_for_once(service: Service) -> None:
    run("show", "beacon", "--collection", COLLECTION, "--kinds", "states,mentions")
    assert len(service.asked) == len(set(service.asked)) == 6
    assert all(each.endswith(f" {COLLECTION} states,mentions") for each in service.asked)
    service.asked.clear()
    flat = run("show", "beacon", "--collection", COLLECTION, "--depth", "1")
    assert len(service.asked) == 1
    assert "uses" not in flat


def test_json_has_the_same_tree(service: Service) -> None:
    tree = json.loads(run("show", "beacon", "--collection", COLLECTION, "--limit", "1", "--json"))
    mentions, requires, maintains, owns = tree["groups"]
    assert (mentions["kind"], mentions["inward"], owns["edge"]) == ("mentions", True, "owns")
    assert (maintains["edge"], maintains["inward"], requires["inward"]) == ("maintains", True, False)
    assert (requires["more"], mentions["more"]) == (1, 0)
    [kafka] = requires["neighbours"]
    assert (kafka["weight"], kafka["node"]["id"], kafka["evidence"]) == (0.9, "kafka", None)
    assert [group["more"] for group in kafka["groups"]] == [0, 8]


def test_node_in_several_collections_lists_them(service: Service) -> None:
    assert run("ann", "--depth", "1").startswith("Ann  entity  ann  company")
    service.is_ambiguous = True
    assert "name one of them as `collection`: company, other" in words(run("ann", exit_code=Exit.USAGE))
    assert run("ann", "--collection", COLLECTION, "--depth", "1").startswith("Ann  entity")


def candidate(identifier: str, label: str) -> dict[str, Any]:
    return {"id": identifier, "collection": COLLECTION, "label": label, "type": "product"}


def test_how_a_name_begins_is_enough_where_it_is_one(service: Service) -> None:
    service.candidates = [candidate("beacon", "Beacon")]
    assert find_node(service.client, "bea", None, None)["node"] == BEACON
    service.candidates += [candidate("kafka", "Bea")]
    assert find_node(service.client, "BEA", None, None)["node"] == KAFKA


def test_several_are_listed_and_none_is_told(service: Service) -> None:
    service.candidates = [candidate(f"id{each}", f"Beacon {each}") for each in range(11)]
    told = run("bea", exit_code=Exit.USAGE)
    assert "'bea' may be several." in told
    assert "id9  company  Beacon 9 (product)" in told
    assert "… and more" in told
    assert "id10" not in told
    service.candidates = []
    with pytest.raises(Failure, match="Nothing is named 'zzz'"):
        find_node(service.client, "zzz", COLLECTION, None)


def test_node_named_much_like_a_command_is_drawn(service: Service) -> None:
    service.candidates = []
    for name in ("Report", "important", "port"):
        run(name, exit_code=Exit.FAILED)
    assert len(service.asked) >= 3


def test_a_misspelt_command_is_no_node(service: Service) -> None:
    assert "Did you mean 'show'?" in words(run("shwo", "x", exit_code=Exit.USAGE))
    assert "Did you mean 'states'?" in words(run("show", "x", "--kinds", "stats", exit_code=Exit.USAGE))
    assert service.asked == []


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_tree_fits_the_terminal(service: Service, width: int) -> None:
    tree = Explorer(service.client, None, 9, with_evidence=True).tree(
        find_node(service.client, "beacon", COLLECTION, None), 3
    )
    output = io.StringIO()
    Console(file=output, width=width, force_terminal=True, color_system=None).print(node_tree(tree))
    assert max(map(len, output.getvalue().splitlines())) <= width


def test_a_node_without_edges_says_so() -> None:
    output = io.StringIO()
    Console(file=output, width=80).print(node_tree({"node": BEACON, "truncated": False, "groups": []}))
    assert output.getvalue() == "Beacon  entity  beacon  company\n└── no such edges\n"


def test_ambiguity_is_a_wrong_setting(service: Service) -> None:
    service.candidates = [candidate("a", "Beacon A"), candidate("b", "Beacon B")]
    with pytest.raises(WrongSetting, match=r"(?s)a  company  Beacon A.*b  company  Beacon B"):
        find_node(service.client, "bea", COLLECTION, None)
