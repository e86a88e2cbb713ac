"""Claims that are true and false, checked by a running service:
`python -m tests.bench.claims --url URL [--half 0|1] KIND=FOLDER=COLLECTION…`.

The kinds are `facts` (the gold triples of 2wikimultihopqa, put into sentences; false ones have the value of another
triple with the same relation), `sentences` (of documents, that begin with their title; false ones have a value of
another such sentence), `scifact` (claims that experts labelled). Of each set the precision and recall of `verified` and
`contradicted`, and how many true claims are called contradicted and false ones verified. Halves are of the questions,
or documents: rules were written with an eye on half 0. The last line is JSON.
"""

import argparse
import gzip
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from indexer.chunking.sentences import sentence_spans

SEED = 20_261_127
EACH = 60  # true claims, and false ones, of a set
FORMS = {
    "director": "{} was directed by {}.",
    "date of birth": "{} was born on {}.",
    "publication date": "{} was released in {}.",
    "date of death": "{} died on {}.",
    "father": "The father of {} was {}.",
    "mother": "The mother of {} was {}.",
    "spouse": "{} was married to {}.",
    "place of birth": "{} was born in {}.",
    "place of death": "{} died in {}.",
    "country": "{} is located in {}.",
    "producer": "{} was produced by {}.",
    "composer": "{} was composed by {}.",
    "inception": "{} was founded in {}.",
}
COARSER = ("date of birth", "date of death", "place of birth", "place of death")
VALUES = (
    re.compile(r"\b(?:\d{1,2} [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2}, \d{4}|(?:18|19|20)\d{2})\b"),
    re.compile(r"\b\d{1,3}(?:,\d{3})+\b|\b\d{2,3}\b"),
    re.compile(r"(?<= )[A-Z][a-z]+(?: [A-Z][a-z]+)*"),
)


class Claim(NamedTuple):
    text: str
    label: str  # SUPPORT, CONTRADICT, or nothing


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as file:
        yield from map(json.loads, file)


def facts(folder: Path, half: int) -> Iterator[Claim]:
    drawn = random.Random(SEED + half)
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for at, question in enumerate(lines(folder / "queries.jsonl.gz")):
        for subject, relation, value in question["metadata"].get("evidences", ()) if at % 2 == half else ():
            if relation in FORMS and (subject, value) not in found[relation]:
                found[relation].append((subject, value))
    triples = [(relation, *each) for relation, of_one in sorted(found.items()) for each in of_one]
    for relation, subject, value in drawn.sample(triples, min(EACH, len(triples))):
        if relation in COARSER:  # as true, and less exact
            yield Claim(
                FORMS[relation].replace(" on ", " in ").format(subject, re.split(r"[ ,]+", value)[-1]), "SUPPORT"
            )
        words = set(value.lower().split())
        others = [other for _, other in found[relation] if words.isdisjoint(other.lower().split())]
        yield Claim(FORMS[relation].format(subject, value), "SUPPORT")
        if others:
            yield Claim(FORMS[relation].format(subject, drawn.choice(others)), "CONTRADICT")


def sentences(folder: Path, half: int) -> Iterator[Claim]:
    drawn = random.Random(SEED + half)
    found: list[tuple[str, int, str]] = []
    for at, document in enumerate(lines(folder / "corpus.jsonl.gz")):
        title = re.sub(r"\s*\(.*\)$", "", document["title"])
        for start, end in sentence_spans(document["text"])[:4] if at % 2 == half else ():
            text = document["text"][start:end]
            if not (text.startswith(title) and 6 <= len(text.split()) <= 22 and "(" not in text):
                continue
            rest = text[len(title) :]
            for kind, values in enumerate(VALUES):
                places = list(values.finditer(rest))
                if places:
                    found.append((text, kind, drawn.choice(places).group()))
                    break
    chosen = drawn.sample(found, min(EACH, len(found)))
    for text, kind, value in chosen:
        shape = len(value.split())
        others = [other for _, one, other in found if one == kind and len(other.split()) == shape and other not in text]
        yield Claim(text, "SUPPORT")
        head, _, tail = text.rpartition(value)
        yield Claim(f"{head}{drawn.choice(others)}{tail}", "CONTRADICT")


def scifact(folder: Path, half: int) -> Iterator[Claim]:
    for at, claim in enumerate(lines(folder / "queries.jsonl.gz")):
        labels = {each["label"] for each in claim["metadata"]["evidence"].values()}
        if at % 2 == half:
            yield Claim(claim["text"], labels.pop() if len(labels) == 1 else "")


KINDS = {"facts": facts, "sentences": sentences, "scifact": scifact}
WANTED = {"SUPPORT": "verified", "CONTRADICT": "contradicted", "": "not_found"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("sets", nargs="+", metavar="KIND=FOLDER=COLLECTION")
    parser.add_argument("--url", default="http://127.0.0.1:8420")
    parser.add_argument("--half", type=int, default=0, choices=(0, 1))
    parser.add_argument("--show", action="store_true", help="Print the claims whose verdict is wrong.")
    asked = parser.parse_args()
    report = {}
    for each in asked.sets:
        kind, folder, collection = each.split("=")
        claims = list(KINDS[kind](Path(folder), asked.half))
        report[kind] = measured(claims, asked.url, collection, show=asked.show)
        print(kind, report[kind])
    print(json.dumps(report))


def measured(claims: list[Claim], url: str, collection: str, *, show: bool) -> dict[str, Any]:
    def check(claim: Claim) -> str:
        body = {"claim": claim.text, "collection": collection}
        answer = httpx.post(f"{url}/v1/fact-checks", json=body, timeout=120).raise_for_status().json()
        verdict = str(answer["verdict"])
        if show and verdict not in ("not_found", "ambiguous", WANTED[claim.label]):
            print(
                claim,
                verdict,
                *(f"\n    {one['by']} {one['claimed']}/{one['stated']}: {one['text']}" for one in answer["evidence"]),
            )
        return verdict

    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(check, claims))
    counts = Counter(zip((claim.label for claim in claims), verdicts, strict=True))
    figures: dict[str, Any] = {
        "claims": len(claims),
        "counts": {f"{a or 'NONE'}→{b}": n for (a, b), n in sorted(counts.items())},
    }
    for label, verdict in (("SUPPORT", "verified"), ("CONTRADICT", "contradicted")):
        right = counts[label, verdict]
        said = sum(count for (_, given), count in counts.items() if given == verdict)
        of_label = sum(count for (of, _), count in counts.items() if of == label)
        figures[verdict] = {
            "precision": right / said if said else None,
            "recall": right / of_label if of_label else None,
        }
    return figures


if __name__ == "__main__":
    main()
