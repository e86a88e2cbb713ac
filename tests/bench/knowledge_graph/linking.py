"""How long it takes to link the names of a question to a graph of many entities.

`python -m tests.bench.knowledge_graph.linking [--entities 100000]`

Made-up documents mention made-up names of one to three words, a tenth of them titles; each question names one to three.
What is timed is what a search does beyond embedding the question. The last line is JSON, in milliseconds.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator

import numpy as np

from query_api.index.graph.view import GraphView
from query_api.query.analysis import Question
from query_api.query.entity_linking import link_names
from tests.support.fakes.text_stores import Page

COLLECTION = "names"
NAMES_A_DOCUMENT = 20
QUESTIONS = 2_000
TEMPLATES = {
    1: "Where was {} founded, and by whom?",
    2: "Did {} ever work with {}?",
    3: "Which of {}, {} and {} is the oldest?",
}
SYLLABLES = "ba be bo da de do ka ke ko la le lo ma me mo na ne no ra re ro sa se so ta te to va ve vo".split()  # noqa: SIM905


def names(count: int, chance: random.Random) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        words = ("".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(chance.randint(1, 3)))
        found[" ".join(word.title() for word in words)] = None
    return list(found)


def pages(called: list[str]) -> Iterator[Page]:
    for start in range(0, len(called), NAMES_A_DOCUMENT):
        own = called[start : start + NAMES_A_DOCUMENT]
        chunks = [[f"{name} is known for {other}."] for name, other in zip(own, own[1:] + own[:1], strict=True)]
        yield Page(f"d{start}", own[0], chunks, own, collection=COLLECTION, types=dict.fromkeys(own, "thing"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    arguments = parser.parse_args()
    chance = random.Random(0)
    called = names(arguments.entities, chance)
    view = GraphView.from_contributions((page.contribution() for page in pages(called)), 0)
    milliseconds, linked = [], 0
    for _ in range(QUESTIONS):
        count = chance.randint(1, 3)
        text = TEMPLATES[count].format(*chance.sample(called, k=count))
        began = time.perf_counter()
        found = link_names(Question(text), view, COLLECTION, None)
        milliseconds.append((time.perf_counter() - began) * 1000)
        linked += bool(found.links or found.entities)
    p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99]).round(3).tolist()
    figures = {"entities": arguments.entities, "questions": QUESTIONS, "p50": p50, "p95": p95, "p99": p99}
    print(json.dumps(figures | {"linked": round(linked / QUESTIONS, 4)}))


if __name__ == "__main__":
    main()
