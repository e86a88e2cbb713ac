"""How many labelled facts are found, and how many chains join: `python -m tests.bench.knowledge_graph.labelled_facts`.

`README.md` beside this describes the files. A fact is found where a statement of its document has an accepted
predicate, and ends that hold the words of the fact's, singular and plural alike, and at most three more. A chain joins
where a path of statements leads from its first end to its last. `--missing dev` prints the failures of a half; of
`held_out` only counts are ever printed. The last line is JSON.
"""

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import Statement
from indexer.resolution.keys import resolution_key
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey

HERE = Path(__file__).parent
HALVES = ("dev", "dev2", "earlier", "held_out")
MAX_MORE_WORDS = 3
_ARTICLES = ("the ", "a ", "an ")

Case = dict[str, Any]


def statements_of(content: str, content_type: str) -> tuple[Statement, ...]:
    """The statements of a whole document."""
    key = DocumentKey("facts", "note")
    upsert = DocumentUpsert(key=key, content=content.encode(), content_type=content_type)
    return prepare(upsert, ChunkingParameters()).statements


def is_found(fact: Case, statements: tuple[Statement, ...]) -> bool:
    forward = {name for name in fact["predicate"] if not name.startswith("^")}
    backward = {name[1:] for name in fact["predicate"] if name.startswith("^")}
    for statement in statements:
        subject, target = ends_of(statement)
        if statement.predicate in forward and holds(subject, fact["subject"]) and holds(target, fact["object"]):
            return True
        if statement.predicate in backward and holds(subject, fact["object"]) and holds(target, fact["subject"]):
            return True
    return False


def ends_of(statement: Statement) -> tuple[str, str]:
    names = {role: name for role, name, _ in statement.roles}
    return names["subject"], names["object"]


def holds(found: str, labelled: str) -> bool:
    """Whether a name that was found is the labelled one, with a few words more."""
    one, other = (_key(each) for each in (found, labelled))
    return f" {other} " in f" {one} " and len(one.split()) - len(other.split()) <= MAX_MORE_WORDS


def _key(name: str) -> str:
    key = resolution_key(name.lower(), "concept")
    return next((key[len(article) :] for article in _ARTICLES if key.startswith(article)), key)


def joins(chain: Case, statements: list[Statement]) -> bool:
    """Whether a path of statements, in either direction, leads from the chain's first end to its last."""
    near: dict[str, set[str]] = defaultdict(set)
    for statement in statements:
        one, other = map(_key, ends_of(statement))
        near[one].add(other)
        near[other].add(one)
    reached = {name for name in near if holds(name, chain["from"])}
    waiting = list(reached)
    while waiting:
        for name in near[waiting.pop()] - reached:
            reached.add(name)
            waiting.append(name)
    return any(holds(name, chain["to"]) for name in reached)


def read(kind: str, half: str) -> list[Case]:
    path = HERE / kind / f"{half}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def measured(half: str, *, show: bool) -> dict[str, Any]:
    """Shares of one half; `found` and `of` by class."""
    found: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for fact in read("labelled_facts", half):
        statements = statements_of(fact["content"], fact["content_type"])
        right = is_found(fact, statements) != fact.get("absent", False)
        of[fact["class"]] += 1
        found[fact["class"]] += right
        if show and not right:
            print(f"{fact['class']}: {fact['content']!r}\n  {fact['subject']} | {fact['predicate']} | {fact['object']}")
            for statement in statements:
                print(f"  found: {statement.predicate} | {' | '.join(ends_of(statement))}")
    joined = 0
    chains = read("stated_chains", half)
    for chain in chains:
        texts = chain.get("documents") or [chain["content"]]
        statements = [each for text in texts for each in statements_of(text, "text/markdown")]
        right = joins(chain, statements)
        joined += right
        if show and not right:
            print(f"chain: {texts}\n  {chain['steps']}")
            for statement in statements:
                print(f"  found: {statement.predicate} | {' | '.join(ends_of(statement))}")
    absent = {fact["class"] for fact in read("labelled_facts", half) if fact.get("absent")}
    return {
        "facts": [
            sum(found[each] for each in of if each not in absent),
            sum(of[each] for each in of if each not in absent),
        ],
        "absent": [sum(found[each] for each in absent), sum(of[each] for each in absent)],
        "chains": [joined, len(chains)],
        "classes": {each: [found[each], of[each]] for each in sorted(of)} if half != "held_out" else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", choices=HALVES[:-1], help="print what of the part is wrong")
    missing = parser.parse_args().missing
    print(json.dumps({half: measured(half, show=half == missing) for half in HALVES}))


if __name__ == "__main__":
    main()
