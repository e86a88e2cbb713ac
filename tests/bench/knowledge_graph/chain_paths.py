"""Whether `/v1/paths` joins the ends of stated chains: `python -m tests.bench.knowledge_graph.chain_paths --url URL`.

Each chain is published to a collection of its own in the installation at URL (an empty one), and its ends are asked
for as a user would name them. `joined` counts chains with a path, `with_sentences` those of which every step has a
sentence, `stated` those whose steps are all statements. `--missing dev` prints what of a half is not joined. The last
line is JSON.
"""

import argparse
import json
from typing import Any

import msgspec

from query_api.client import NotFound, ServiceClient
from tests.bench.knowledge_graph.labelled_facts import Case, read

HALVES = ("dev", "dev2", "held_out")


def publish(client: ServiceClient, half: str, number: int, chain: Case) -> tuple[str, str]:
    """The chain's collection, and a token of the positions that it was written to."""
    collection = f"chain-{half.replace('_', '-')}-{number}"
    texts = chain.get("documents") or [chain["content"]]
    envelopes = [
        {
            "collection": collection,
            "id": f"{at}.md",
            "content": text,
            "content_type": "text/markdown",
        }
        for at, text in enumerate(texts)
    ]
    return collection, client.publish(list(map(msgspec.json.encode, envelopes)))["token"]


def measured(client: ServiceClient, half: str, *, show: bool) -> dict[str, int]:
    chains = read("stated_chains", half)
    written = [publish(client, half, number, chain) for number, chain in enumerate(chains)]
    counts = {"of": len(chains), "joined": 0, "with_sentences": 0, "stated": 0}
    for chain, (collection, token) in zip(chains, written, strict=True):
        paths = paths_between(client, chain, collection, token)
        steps = paths[0]["steps"] if paths else []
        counts["joined"] += bool(steps)
        complete = bool(steps) and all((step.get("evidence") or {}).get("sentence") for step in steps)
        counts["with_sentences"] += complete
        counts["stated"] += bool(steps) and all(step["predicate"] != "mentioned_with" for step in steps)
        if show and not complete:
            print(
                f"{chain.get('documents') or chain['content']!r}\n  {chain['from']} ... {chain['to']}: {chain['steps']}"
            )
            for step in steps:
                sentence = (step.get("evidence") or {}).get("sentence")
                print(f"  {step['source']['label']} {step['predicate']} {step['target']['label']}: {sentence}")
    return counts


def paths_between(client: ServiceClient, chain: Case, collection: str, token: str) -> list[dict[str, Any]]:
    asked = {"from": chain["from"], "to": chain["to"], "collection": collection, "after": token, "max_steps": 6}
    try:
        found: list[dict[str, Any]] = client.get("/v1/paths", {**asked, "wait_seconds": 60})["paths"]
    except NotFound:
        return []
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--missing", choices=HALVES[:-1], help="print what of the part is not joined")
    asked = parser.parse_args()
    client = ServiceClient(asked.url, None)
    try:
        print(json.dumps({half: measured(client, half, show=half == asked.missing) for half in HALVES}))
    finally:
        client.close()


if __name__ == "__main__":
    main()
