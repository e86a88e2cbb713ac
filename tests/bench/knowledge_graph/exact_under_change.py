"""Whether deletes leave a trace in the graph: `python -m tests.bench.knowledge_graph.exact_under_change FOLDER`.

The folder holds labelled documents as `thalweg evaluate graph` reads them. Each takes the indexer's way: prepared,
encoded, tagged, linked, written to Kùzu, published. The half that is kept, written alone, is compared with all
documents added and half of them deleted, in shuffled orders and batches, with people's edits made in shuffled orders
too: the digest of the published tables, and the entities and their facts as people see them. The last line is JSON;
the exit code is 1 where anything differs.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import PromptedEncoder
from indexer.extraction.entity_mentions import entity_mentions
from indexer.extraction.mention_tagger import tagger_for
from indexer.generation_folders import Generation
from indexer.graph.snapshots import read_graph
from indexer.graph.store import GraphStore
from indexer.linking import contribution
from indexer.store_verification import graph_digest
from query_api.entities.catalogue import EntityCatalogue, EntityCatalogues
from query_api.entities.entity_facts import FactFinder
from query_api.evaluation.graph_runner import prepared_from
from query_api.evaluation.labelled_graphs import read_graphs
from query_api.index.curation_follower import CollectionEdits, Curation, Placed
from query_api.index.graph.view import GraphView
from query_api.settings import ServiceSettings
from schemas.graph_delta import Contribution
from schemas.graph_edits import DecisionEdit, EntityEdit, MergeEdit
from schemas.ids import DocumentKey, digest

Said = TypeVar("Said", MergeEdit, DecisionEdit, EntityEdit)
Change = tuple[DocumentKey, Contribution | None]

BATCH = 16
EDITS = 40


def contributions(folder: Path, limit: int, encoder: PromptedEncoder) -> Iterator[Contribution]:
    tagger = tagger_for(encoder)
    _, graphs = read_graphs(folder)
    for graph in graphs[:limit]:
        prepared = prepared_from(graph)
        if tagger is None:
            yield contribution(prepared, encoder.encode(prepared.embedding_texts))
        else:
            vectors, spans = tagger.encode(encoder, prepared.embedding_texts)
            yield contribution(prepared, np.asarray(vectors), entities=entity_mentions(prepared, spans))


def adding(documents: Sequence[Contribution]) -> list[Change]:
    return [(DocumentKey(each.collection, each.document_id), each) for each in documents]


def shuffled(kept: list[Change], deleted: list[Change], chance: random.Random) -> list[Change]:
    """All added in any order, the deleted ones also deleted somewhere after."""
    changes = [*kept, *deleted]
    chance.shuffle(changes)
    for key, _ in deleted:
        added = next(at for at, (other, _) in enumerate(changes) if other == key)
        changes.insert(chance.randint(added + 1, len(changes)), (key, None))
    return changes


def written(changes: Sequence[Change], folder: Path, chance: random.Random) -> tuple[str, GraphView]:
    """The digest of the published graph, and the view of it."""
    generation = Generation(folder, "g0001")
    generation.root.mkdir(parents=True, exist_ok=True)
    writer = GraphStore.open(generation)
    start = position = 0
    while start < len(changes):
        size = chance.randint(1, 2 * BATCH)
        writer.apply(list(dict(changes[start : start + size]).items()), position)
        start, position = start + size, position + 1
    tables = read_graph(generation.snapshots_dir, writer.snapshot())
    return graph_digest(tables), GraphView.build(tables, position)


def edits(catalogue: EntityCatalogue, chance: random.Random) -> CollectionEdits:
    """People's merges, rejections, splits and renamings of entities that are there, each at an offset of its own."""
    ids = [catalogue[row].id for row in chance.sample(range(len(catalogue)), k=min(4 * EDITS, len(catalogue)))]
    merges: dict[str, Placed[MergeEdit]] = {}
    decisions: dict[str, Placed[DecisionEdit]] = {}
    entities: dict[str, Placed[EntityEdit]] = {}
    for at, (one, other) in enumerate(zip(ids[::2], ids[1::2], strict=False)):
        match at % 4:
            case 0:
                merges[f"m{at}"] = Placed(MergeEdit(entities=[one, other]), at)
            case 1:
                decisions[f"d{at}"] = Placed(DecisionEdit(decision="reject", entities=[one, other]), at)
            case 2:
                decisions[f"d{at}"] = Placed(DecisionEdit(decision="split", entities=[one]), at)
            case _:
                entities[one] = Placed(EntityEdit(name=f"Renamed {at}", type="thing"), at)
    return CollectionEdits(merges=merges, decisions=decisions, entities=entities)


def in_other_order(said: CollectionEdits, chance: random.Random) -> CollectionEdits:
    """The same edits as if they had arrived so."""

    def mixed(of: Mapping[str, Placed[Said]]) -> dict[str, Placed[Said]]:
        return dict(chance.sample(sorted(of.items()), k=len(of)))

    return CollectionEdits(merges=mixed(said.merges), decisions=mixed(said.decisions), entities=mixed(said.entities))


def seen(view: GraphView, curation: Curation) -> str:
    """A digest of the entities and their facts, as people see them."""
    catalogue = EntityCatalogues().of(view, curation)
    finder = FactFinder(view, catalogue)
    rows = []
    for at in range(len(catalogue)):
        entity = catalogue[at]
        facts = [
            (fact.subject.surface, fact.predicate, fact.object.surface, fact.strength, len(fact.statements))
            for fact in finder.of_entities(np.array(entity.members, dtype=np.uint64))
        ]
        rows.append(msgspec.json.encode([entity._asdict(), sorted(facts)]).decode())
    return digest(*sorted(rows))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--shuffles", type=int, default=10)
    arguments = parser.parse_args()
    documents = list(
        contributions(arguments.folder, arguments.documents, load_encoder(ServiceSettings.load().embedding))
    )
    kept, deleted = adding(documents[::2]), adding(documents[1::2])
    collection = documents[0].collection
    with tempfile.TemporaryDirectory() as folder:
        alone, view = written(kept, Path(folder) / "alone", random.Random(0))
        said = edits(EntityCatalogues().of(view, Curation()), random.Random(1))
        expected = seen(view, Curation({collection: said}))
        print(f"{'kept half alone':<20} graph {alone}  entities {expected}")
        equal = 0
        for number in range(1, arguments.shuffles + 1):
            chance = random.Random(number)
            found, view = written(shuffled(kept, deleted, chance), Path(folder) / f"shuffle-{number}", chance)
            shown = seen(view, Curation({collection: in_other_order(said, chance)}))
            equal += (found, shown) == (alone, expected)
            print(f"{f'shuffle {number}':<20} graph {found}  entities {shown}")
    print(
        json.dumps(
            {"documents": len(documents), "deleted": len(deleted), "shuffles": arguments.shuffles, "equal": equal}
        )
    )
    return 0 if equal == arguments.shuffles else 1


if __name__ == "__main__":
    sys.exit(main())
