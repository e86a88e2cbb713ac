"""`thalweg graph show`: a node with its edges by kind, some levels deep."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from urllib.parse import quote

from query_api.client import JSONObject, NotFound, ServiceClient
from schemas.errors import Failure, WrongSetting

EDGES_READ = 500
STATEMENTS_READ = 500
CANDIDATES = 10


def find_node(client: ServiceClient, text: str, collection: str | None, kinds: str | None) -> JSONObject:
    """The answer of `/v1/nodes` to an id or a name, or to how a word of the name of one entity begins; without a
    collection, in all of them.

    Raises WrongSetting with the candidates where there are several, Failure for none.
    """
    try:
        return _node(client, text, collection, kinds)
    except NotFound as error:
        among = {} if collection is None else {"collection": collection}
        candidates = client.get("/v1/entities", {"prefix": text, "limit": CANDIDATES + 1} | among)["entities"]
        exact = [each for each in candidates if each["label"].casefold() == text.casefold()]
        if len(chosen := exact or candidates) == 1:
            return _node(client, chosen[0]["id"], chosen[0]["collection"], kinds)
        if not candidates:
            raise Failure(f"{error} Nor does a word of any name begin with it.") from error
        raise WrongSetting(_several(text, chosen)) from error


def _several(text: str, candidates: list[JSONObject]) -> str:
    lines = [
        f"  {each['id']}  {each['collection']}  {each['label']} ({each['type']})" for each in candidates[:CANDIDATES]
    ]
    more = ["  … and more"] if len(candidates) > CANDIDATES else []
    return "\n".join([f"{text!r} may be several. Give the whole name, or one of these ids:", *lines, *more])


def _node(client: ServiceClient, identifier: str, collection: str | None, kinds: str | None) -> JSONObject:
    params = {"collection": collection, "limit": EDGES_READ, "kinds": kinds}
    given = {name: value for name, value in params.items() if value is not None}
    return client.get(f"/v1/nodes/{quote(identifier, safe='')}", given)


class Explorer:
    """Asks for the nodes around a node, each once; the strongest `limit` edges of each kind, and half as many at each
    further level."""

    def __init__(self, client: ServiceClient, kinds: str | None, limit: int, *, with_evidence: bool) -> None:
        self._client = client
        self._kinds = kinds
        self._limit = limit
        self._with_evidence = with_evidence
        self._drawn: set[str] = set()

    def tree(self, detail: JSONObject, depth: int, level: int = 0, parent: str | None = None) -> JSONObject:
        """`{node, groups}`; a group has the `kind` of its edges, the `edge` (kind, or predicate and role), whether it
        leads `inward`, how many `more` there are, and `neighbours`: a tree, the `weight` and the `evidence` of each. A
        node that is further up already has no groups, and the `parent` is not repeated."""
        node = detail["node"]
        self._drawn.add(node["id"])
        grouped: dict[tuple[str, str, bool], list[JSONObject]] = defaultdict(list)
        for neighbour in detail["neighbours"]:
            if neighbour["node"]["id"] != parent:
                grouped[_group(neighbour["edge"], node["id"])].append(neighbour)
        sentences = self._sentences(node) if self._with_evidence else {}
        grouped = {group: _strongest(found) for group, found in grouped.items()}
        limit = max(1, self._limit >> level)
        shown = {group: found[:limit] for group, found in grouped.items()}
        expanded = self._expanded(
            [each["node"] for found in shown.values() for each in found], depth, level, node["id"]
        )
        return {
            "node": node,
            "truncated": detail["truncated"],
            "groups": [
                {
                    "kind": kind,
                    "edge": name,
                    "inward": inward,
                    "more": len(grouped[kind, name, inward]) - len(found),
                    "neighbours": [
                        {
                            "weight": each["edge"]["weight"],
                            "evidence": sentences.get((name.partition(" (")[0], each["node"]["id"])),
                            **expanded[each["node"]["id"]],
                        }
                        for each in found
                    ],
                }
                for (kind, name, inward), found in shown.items()
            ],
        }

    def _expanded(self, nodes: Collection[JSONObject], depth: int, level: int, parent: str) -> dict[str, JSONObject]:
        """A tree for each of the nodes; those that are drawn already, or are as deep as is asked for, are leaves."""
        following = {node["id"]: node for node in nodes if depth > 1 and node["id"] not in self._drawn}
        self._drawn |= following.keys()
        trees = {node["id"]: {"node": node, "truncated": False, "groups": []} for node in nodes}
        for identifier, node in following.items():
            try:
                detail = _node(self._client, identifier, node["collection"], self._kinds)
            except NotFound:  # gone meanwhile
                continue
            trees[identifier] = self.tree(detail, depth - 1, level + 1, parent)
        return trees

    def _sentences(self, node: JSONObject) -> dict[tuple[str, str], str]:
        """{(predicate, id of the other entity): a sentence that says so} of an entity."""
        if node["kind"] != "entity":
            return {}
        path = f"/v1/entities/{quote(node['id'], safe='')}"
        try:
            described = self._client.get(path, {"limit": STATEMENTS_READ})
        except NotFound:
            return {}
        return dict(_evidence(described["statements"]))


def _evidence(statements: list[JSONObject]) -> Iterator[tuple[tuple[str, str], str]]:
    for statement in reversed(statements):  # the strongest come first, and are to stay
        sentence = next((each["sentence"] for each in statement["evidence"] if each["sentence"]), None)
        if sentence is None:
            continue
        parts = [statement["subject"], statement["object"], *(part["entity"] for part in statement["further"])]
        for part in parts:
            if part["id"] is not None:
                yield (statement["predicate"], part["id"]), sentence


def _group(edge: JSONObject, here: str) -> tuple[str, str, bool]:
    """Kind, name for people, and whether it leads to the node `here`."""
    kind, label = edge["kind"], edge["label"]
    is_named = kind in ("states", "hand_made") and label
    return kind, label if is_named else kind, edge["from"] != here


def _strongest(neighbours: list[JSONObject]) -> list[JSONObject]:
    """Each node once, by its heaviest edge; the heaviest come first."""
    found: dict[str, JSONObject] = {}
    for each in neighbours:
        found.setdefault(each["node"]["id"], each)
    return list(found.values())
