"""How many plain facts of ordinary prose are found: `python -m tests.bench.knowledge_graph.plain_facts`.

`plain_facts.jsonl` has a sentence a line with one of its facts: subject, predicate, object; `also` lists further
predicates that say the same, `^` before one of which subject and object change places. The rules were developed on one
half, `development`, and scored on the other, `kept_apart`. A fact is found where a statement has an accepted predicate,
and ends that hold the words of the fact's, one after the other, and at most three more. The last line is JSON.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import Statement
from schemas.events import DocumentUpsert
from schemas.ids import DocumentKey, normalise_name

FACTS = Path(__file__).with_name("plain_facts.jsonl")
PARTS = ("development", "kept_apart")
MAX_MORE_WORDS = 3
_ARTICLES = ("the ", "a ", "an ")


def statements_of(text: str) -> tuple[Statement, ...]:
    """The statements of a text that is a whole document."""
    upsert = DocumentUpsert(
        key=DocumentKey("facts", "note.md"), content=text.encode(), content_type="text/markdown", title="Note"
    )
    return prepare(upsert, ChunkingParameters()).statements


def is_found(fact: dict[str, Any], statements: tuple[Statement, ...]) -> bool:
    """Whether a statement says the fact."""
    forward = {name for name in (fact["predicate"], *fact["also"]) if not name.startswith("^")}
    backward = {name[1:] for name in fact["also"] if name.startswith("^")}
    for statement in statements:
        names = {role: name for role, name, _ in statement.roles}
        ends = names["subject"], names["object"]
        if statement.predicate in forward and _hold(ends, (fact["subject"], fact["object"])):
            return True
        if statement.predicate in backward and _hold(ends, (fact["object"], fact["subject"])):
            return True
    return False


def _hold(found: tuple[str, str], labelled: tuple[str, str]) -> bool:
    return all(_holds(one, _bare(normalise_name(other))) for one, other in zip(found, labelled, strict=True))


def _holds(found: str, labelled: str) -> bool:
    more = len(_bare(found).split()) - len(labelled.split())
    return f" {labelled} " in f" {found} " and more <= MAX_MORE_WORDS


def _bare(name: str) -> str:
    return next((name[len(article) :] for article in _ARTICLES if name.startswith(article)), name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", choices=PARTS, help="print the sentences of a part whose fact is not found")
    missing = parser.parse_args().missing
    facts = [json.loads(line) for line in FACTS.read_text(encoding="utf-8").splitlines()]
    found: dict[str, list[bool]] = {part: [] for part in PARTS}
    for fact in facts:
        statements = statements_of(fact["text"])
        found[fact["part"]].append(is_found(fact, statements))
        if fact["part"] == missing and not found[fact["part"]][-1]:
            print(f"{fact['text']}\n  wanted: {fact['subject']} | {fact['predicate']} | {fact['object']}")
            for statement in statements:
                print(f"  found: {' | '.join((statement.predicate, *(name for _, name, _ in statement.roles)))}")
    print(json.dumps({part: {"found": sum(of), "facts": len(of)} for part, of in found.items()}))


if __name__ == "__main__":
    main()
