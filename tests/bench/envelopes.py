"""Collections in forms of their own, as the JSON lines of envelopes that `thalweg load` reads.

`python -m tests.bench.envelopes peps events.jsonl.xz | thalweg load -`: a stream of changed files, one event a line
({op, path, text}), as its newest state, or with --every as the whole stream in its order, deletes included.
`python -m tests.bench.envelopes wikispeedia leads.jsonl.gz | thalweg load -`: one linked article a line
({_id, title, text, metadata: {links, categories}}), its links as links of the envelope.
"""

import argparse
import gzip
import json
import lzma
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO, cast

Line = dict[str, Any]

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def peps(events: Iterable[Line], *, every: bool = False) -> Iterator[Line]:
    """An envelope for each proposal as it is at the end of the events, in the order of its last change; with `every`
    one for each event."""
    newest: dict[str, Line] = {}
    for event in events:
        name = event["path"].removeprefix("peps/")
        key = {"id": name, "collection": "peps"}
        if event["op"] == "delete":
            envelope = {**key, "deleted": True}
        else:
            envelope = {**key, "content": event["text"], "content_type": "text/x-rst"}
        if every:
            yield envelope
        newest.pop(name, None)
        newest[name] = envelope
    if not every:
        yield from (envelope for envelope in newest.values() if "content" in envelope)


def wikispeedia(articles: Iterable[Line]) -> Iterator[Line]:
    """An envelope for each article; its categories are metadata, in the order given."""
    for article in articles:
        yield {
            "id": article["_id"],
            "collection": "wikispeedia",
            "title": article["title"],
            "content": article["text"],
            "content_type": "text/plain",
            "links": article["metadata"]["links"],
            "metadata": {"category": [path.replace(".", " / ") for path in article["metadata"]["categories"]]},
        }


def lines_of(file: Path) -> Iterator[Line]:
    """The objects of a file of JSON lines, plain or packed."""
    opener = OPENERS.get(file.suffix, open)
    with cast("TextIO", opener(file, "rt", encoding="utf-8")) as lines:
        yield from map(json.loads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=("peps", "wikispeedia"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", action="store_true", help="of peps: each event, not only the newest of each file")
    given = parser.parse_args()
    lines = lines_of(given.file)
    envelopes = peps(lines, every=given.every) if given.form == "peps" else wikispeedia(lines)
    for envelope in envelopes:
        sys.stdout.write(json.dumps(envelope, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
