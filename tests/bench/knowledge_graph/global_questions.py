"""Whether "everything about X" brings what is about X: `python -m tests.bench.knowledge_graph.global_questions URL`.

Asks a service that holds `deploy/samples/peps.jsonl.xz` and `wikispeedia` (`tests.bench.envelopes`), with nothing but
the question and the collection. Of each question: is the first hit of a document about X, and does each of the first
five come from one, or name X in its passage or title? `--missing dev` prints what is not; of `held_out` only counts
are ever printed. The last line is JSON. `README.md` beside this describes the files.
"""

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import httpx

FOLDER = Path(__file__).parent / "global_questions"
HALVES = ("dev", "held_out")
FIRST = 5
ASK_SECONDS = 60.0

Case = dict[str, Any]


def is_about(case: Case, hit: Case) -> bool:
    return hit["document_id"] in case["about"]


def is_stranger(case: Case, hit: Case) -> bool:
    """Whether neither its document is about X, nor its passage or title names X, at the beginning of a word."""
    text = f"{hit['title']} {hit['parent_text']}"
    named = any(re.search(rf"(?<!\w){re.escape(name)}", text, re.IGNORECASE) for name in case["names"])
    return not named and not is_about(case, hit)


def measured(client: httpx.Client, half: str, *, show: bool) -> dict[str, dict[str, int]]:
    """Counts of one half by collection."""
    found: dict[str, Counter[str]] = {}
    for line in (FOLDER / f"{half}.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        parameters = {"q": case["q"], "collection": case["collection"], "k": str(FIRST)}
        answer = client.get("/v1/search", params=parameters).raise_for_status().json()
        hits = answer["hits"]
        right = bool(hits) and is_about(case, hits[0])
        strangers = [hit for hit in hits if is_stranger(case, hit)]
        explained = bool(hits) and all(hit["path"] or hit["community"] for hit in hits)
        counts = {"questions": 1, "global": answer["mode"] == "global", "about_first": right}
        counts |= {"without_strangers": bool(hits) and not strangers, "explained": explained}
        found.setdefault(case["collection"], Counter()).update({name: int(count) for name, count in counts.items()})
        if show and (not right or strangers):
            print(f"{case['q']} ({answer['mode']})")
            for hit in hits:
                print(f"  {'!' if hit in strangers else ' '} {hit['document_id']}: {hit['text'][:70]!r}")
    return {collection: dict(counts) for collection, counts in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="of the service, such as http://localhost:8420")
    parser.add_argument("--missing", choices=HALVES[:-1], help="print what of the half is wrong")
    given = parser.parse_args()
    with httpx.Client(base_url=given.url, timeout=ASK_SECONDS) as client:
        print(json.dumps({half: measured(client, half, show=half == given.missing) for half in HALVES}))


if __name__ == "__main__":
    main()
