"""Typed relations of a stream of documents against its labels: `python -m tests.bench.knowledge_graph.peps FOLDER`.

The figures of `thalweg evaluate graph FOLDER`, by relation; the last line is JSON.
"""

import argparse
import json
from pathlib import Path

from query_api.evaluation.typed_relations import files_of, final_texts, labelled_relations, relation_report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    files = files_of(parser.parse_args().folder)
    if files is None:
        parser.error("The folder has no events.jsonl and relations.tsv.")
    report = relation_report(final_texts(files[0]), labelled_relations(files[1]), lambda _: None)
    for relation, figures in report["by_relation"].items():
        print(f"{relation:<16}" + "  ".join(f"{name} {value:.3f}" for name, value in figures.items()))
    print(json.dumps(report["relation"]))


if __name__ == "__main__":
    main()
