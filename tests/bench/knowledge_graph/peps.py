"""Typed relations of the PEP stream against its labels: `python -m tests.bench.knowledge_graph.peps FOLDER`.

The folder has `events.jsonl.xz`, creates, updates and deletes of documents in order, and `relations.tsv.gz`: head,
relation, tail. The final state of each document is prepared in process; what its header states is compared with the
labelled relations of all kinds but `mentions`, names normalised. Relations that no label has are not counted. Prints
precision, recall and F1 by relation; the last line is JSON.
"""

import argparse
import csv
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path

from indexer.chunking.splitter import ChunkingParameters
from indexer.extraction.metadata import EXTRACTOR
from indexer.pipeline import prepare
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, normalise_name

Triple = tuple[str, str, str]


def final_texts(folder: Path) -> dict[str, str]:
    """Path → text of each document that is left when all events are applied."""
    live: dict[str, str] = {}
    with lzma.open(folder / "events.jsonl.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            event = json.loads(line)
            if event["op"] == "delete":
                live.pop(event["path"], None)
            else:
                live[event["path"]] = event["text"]
    return live


def labelled(folder: Path) -> set[Triple]:
    with gzip.open(folder / "relations.tsv.gz", "rt", encoding="utf-8") as rows:
        return {
            (normalise_name(row["head"]), row["relation"], normalise_name(row["tail"]))
            for row in csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)
            if row["relation"] != "mentions"
        }


def extracted(texts: dict[str, str]) -> Iterator[Triple]:
    for path, text in texts.items():
        upsert = DocumentUpsert(key=DocumentKey("peps", path), content=text.encode(), content_type="text/x-rst")
        for statement in prepare(upsert, ChunkingParameters()).statements:
            if statement.extractor == EXTRACTOR:
                names = {role: name for role, name, _ in statement.roles}
                yield names["subject"], statement.predicate, names["object"]


def scores(found: set[Triple], gold: set[Triple]) -> dict[str, float]:
    right = len(found & gold)
    precision, recall = right / max(len(found), 1), right / max(len(gold), 1)
    f1 = 2 * right / max(len(found) + len(gold), 1)
    return {"found": len(found), "labelled": len(gold), "precision": precision, "recall": recall, "f1": f1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    gold = labelled(folder)
    relations = sorted({relation for _, relation, _ in gold})
    found = {triple for triple in extracted(final_texts(folder)) if triple[1] in relations}
    for relation in relations:
        of = scores({one for one in found if one[1] == relation}, {one for one in gold if one[1] == relation})
        print(f"{relation:<16}" + "  ".join(f"{name} {value:.3f}" for name, value in of.items()))
    print(json.dumps(scores(found, gold)))


if __name__ == "__main__":
    main()
