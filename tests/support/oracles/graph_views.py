"""Made-up histories of a graph, and all that a view of one shows, for comparing views."""

import numpy as np
from hypothesis import strategies as st

from query_api.index.graph.hand_made_relations import (
    End,
    MadeRelation,
    made_documents,
    made_nodes,
    made_relations,
    relations_of,
)
from query_api.index.graph.identifiers import entity_key_of
from query_api.index.graph.view import GraphView
from schemas.graph_delta import (
    AboutEdge,
    ChunkEdge,
    ChunkNode,
    Contribution,
    HandMadeNode,
    LinkEdge,
    MentionEdge,
    Relation,
    SectionNode,
    StatementNode,
)
from schemas.ids import DocumentKey, chunk_id, entity_id, passage_id, section_id
from tests.support.fixtures.graph import statement

Batch = list[tuple[DocumentKey, Contribution | None]]

COLLECTIONS = ("a", "b")
IDS = ("d0", "d1.md", "d1.html", "d2/index.md", "d2/README.md")
LINKED = (*IDS, "d1", "d1.rst", "d2", "d2/index.html", "d9")
NAMES = tuple(f"name {number}" for number in range(6))
PREDICATES = ("author", "replaces")
JOINED = (
    "made in d0",
    "made in d9",
    "a/d0",
    entity_id("a", "name 0"),
    entity_id("b", "name 1"),
    chunk_id(DocumentKey("a", "d0"), [], "p", 0),
)
"""What ends of relations may name, beside documents' ids."""


@st.composite
def contributions(draw: st.DrawFn, key: DocumentKey) -> Contribution:
    """A small document: up to four chunks in up to two passages, its text of a pool that revisions share."""
    texts = draw(st.lists(st.sampled_from("pqrs"), max_size=4, unique=True))
    chunks = [
        ChunkNode(chunk_id(key, [], text, 0), passage_id(key, [], f"passage {at // 2}", 0), at // 2, 0)
        for at, text in enumerate(texts)
    ]
    numbers = st.integers(0, len(chunks) - 1)
    names = st.sampled_from(NAMES)
    mentions: dict[tuple[int, str], MentionEdge] = {}
    statements: dict[str, StatementNode] = {}
    edges: dict[tuple[str, int, int], ChunkEdge] = {}
    links: dict[tuple[int, str, str], LinkEdge] = {}
    if chunks:
        for chunk, name in draw(st.lists(st.tuples(numbers, names), max_size=6)):
            sentences = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=3)))
            kind, entity_type = draw(st.sampled_from([("thing", ""), ("", "person"), ("thing", "place")]))
            mentions[chunk, name] = MentionEdge(
                chunk, name, name.title(), kind, len(sentences), sentences, entity_type, 0.5 if entity_type else 0.0
            )
        for chunk, predicate, subject, target in draw(
            st.lists(st.tuples(numbers, st.sampled_from(PREDICATES), names, names), max_size=3)
        ):
            one = statement(
                chunks,
                chunk,
                predicate,
                [("subject", subject), ("object", target)],
                extractor="test",
                confidence=0.5,
                sentence=1,
            )
            statements[one.id] = one
        for source, target_chunk in draw(st.lists(st.tuples(numbers, numbers), max_size=3)):
            edges["similar_to", source, target_chunk] = ChunkEdge("similar_to", source, target_chunk, 0.75)
        for chunk, collection, target in draw(
            st.lists(st.tuples(numbers, st.sampled_from(COLLECTIONS), st.sampled_from(LINKED)), max_size=3)
        ):
            links[chunk, collection, target] = LinkEdge(chunk, collection, target, 0.5)
    about = draw(st.lists(names, max_size=2, unique=True))
    made = f"made in {key.document_id}"  # a document contributes only what no other does
    ends = st.sampled_from([*LINKED, *JOINED])
    nodes = (
        [HandMadeNode(made, "Made", "thing", draw(st.lists(names, max_size=2)), "{}")] if draw(st.booleans()) else []
    )
    relations = [
        Relation(f"{made} {at}", draw(ends), draw(ends), draw(st.sampled_from(PREDICATES)), 0.5, "{}")
        for at in range(draw(st.integers(0, 2)))
    ]
    return Contribution(
        collection=key.collection,
        document_id=key.document_id,
        revision=draw(st.sampled_from(["1", "2"])),
        title=draw(st.sampled_from(["One", "Two"])),
        sections=[SectionNode(section_id(key, [], 0), "", 0, -1)],
        chunks=chunks,
        about=[AboutEdge(name, name.title(), 1.0 if at == 0 else 0.75) for at, name in enumerate(about)],
        mentions=list(mentions.values()),
        statements=list(statements.values()),
        edges=list(edges.values()),
        links=list(links.values()),
        nodes=nodes,
        relations=relations,
    )


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Contribution], list[Batch]]:
    """A base, and batches of changes after it."""
    keys = [DocumentKey(collection, identifier) for collection in COLLECTIONS for identifier in IDS]
    base = [draw(contributions(key)) for key in draw(st.lists(st.sampled_from(keys), max_size=5, unique=True))]
    batches = []
    for _ in range(draw(st.integers(0, 5))):
        changed = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=3))
        batches.append([(key, draw(st.none() | contributions(key))) for key in changed])
    return base, batches


def everything(view: GraphView) -> dict[str, object]:
    """All that can be asked of a view, by ids and names, in an order that does not depend on its numbering."""
    keys = [DocumentKey(collection, identifier) for collection in COLLECTIONS for identifier in IDS]
    entities = np.array([entity_key_of(c, name) for c in COLLECTIONS for name in NAMES], dtype=np.uint64)
    documents = {key: number for key in keys if (number := view.document(key)) is not None}
    passages = np.array([p for number in documents.values() for p in view.passages_of_document(number)], dtype=np.int64)
    chunks = np.array([c for passage in passages.tolist() for c in view.chunks_of_passage(passage)], dtype=np.int64)
    numbers = np.array(list(documents.values()), dtype=np.int64)
    mentions_in, mentions_of = view.mention_edges_in(passages), view.mention_edges_of(entities)
    about, about_of = view.about(entities), view.about_of(numbers)
    links_from, links_to = view.links_from(passages), view.links_to(numbers)
    edges = view.chunk_edges(chunks)
    cid, pid, doc = view.chunk_id, view.passage_id, view.document_key
    ends = [End("document", each) for each in documents.values()]
    ends += [*(End("chunk", each) for each in chunks.tolist()), *(End("entity", each) for each in entities.tolist())]

    def name_of(end: End | None) -> object:
        shown = {"document": doc, "chunk": cid, "entity": int}
        return None if end is None else (end.kind, str(shown[end.kind](end.at)))

    def shown(relation: MadeRelation) -> tuple[object, ...]:
        joined = (name_of(relation.source), name_of(relation.target))
        return (doc(relation.document), relation.name, relation.predicate, relation.weight, relation.source_name,
                relation.target_name, str(joined))  # fmt: skip

    return {
        "documents": {key: (view.document_key(number), view.title(number)) for key, number in documents.items()},
        "passages": {key: [pid(p) for p in view.passages_of_document(n)] for key, n in documents.items()},
        "chunks": {pid(p): [cid(c) for c in view.chunks_of_passage(p)] for p in passages.tolist()},
        "found": (
            [view.passages([pid(p)]).tolist() == [p] for p in passages.tolist()],
            [view.chunks([cid(c)]).tolist() == [c] for c in chunks.tolist()],
            view.ids_of_passages(passages.tolist()) == [pid(p) for p in passages.tolist()],
        ),
        "names": view.entity_names(entities.tolist()),
        "labels": view.labels({key: name for key, (_, name) in view.entity_names(entities.tolist()).items()}),
        "named": view.entities_named(NAMES),
        "named in a": view.entities_named(NAMES, "a"),
        "frequencies": view.passage_frequencies(entities).tolist(),
        "mentions in": sorted(
            (pid(p), cid(c), e) for _, c, p, e in zip(*map(np.ndarray.tolist, mentions_in), strict=True)
        ),
        "mentions of": sorted(
            (pid(p), cid(c), e) for _, c, p, e in zip(*map(np.ndarray.tolist, mentions_of), strict=True)
        ),
        "about": sorted((doc(d), e, w) for _, d, e, w in zip(*map(np.ndarray.tolist, about), strict=True)),
        "about of": sorted((doc(d), e, w) for _, d, e, w in zip(*map(np.ndarray.tolist, about_of), strict=True)),
        "links from": sorted(
            (cid(c), pid(p), doc(d), w) for _, c, p, d, w in zip(*map(np.ndarray.tolist, links_from), strict=True)
        ),
        "links to": sorted(
            (cid(c), pid(p), doc(d), w) for _, c, p, d, w in zip(*map(np.ndarray.tolist, links_to), strict=True)
        ),
        "chunk edges": sorted(
            (cid(c), cid(o), k, w) for _, c, o, k, w in zip(*map(np.ndarray.tolist, edges), strict=True)
        ),
        "statements in": sorted(
            (s.key, cid(s.chunk), pid(s.passage), s.predicate, s.confidence, s.sentence, sorted(s.roles))
            for s in view.statements_in(passages)
        ),
        "statements with": sorted(
            (s.query_index, s.key, cid(s.chunk), pid(s.passage), s.predicate, sorted(s.roles))
            for s in view.statements_with(entities)
        ),
        "nodes": sorted((doc(each.document), *each[1:]) for each in made_nodes(view.segments)),
        "relations": sorted(shown(each) for each in made_relations(view.segments)),
        "relations of": sorted(
            (str(name_of(ends[each.query_index])), *shown(each)) for each in relations_of(view.segments, ends)
        ),
        "made": sorted(
            str(doc(each))
            for each in np.flatnonzero(made_documents(view.segments)).tolist()
            if each in documents.values()
        ),
        "predicates": sorted({each.predicate for each in made_relations(view.segments)} - {*view.predicates()}),
        "count": view.n_documents,
    }
