"""Labelled documents and sentences, made up, in the two forms of lines."""

import gzip
import json
from pathlib import Path
from typing import Any

DOCUMENT: dict[str, Any] = {
    "_id": "d1",
    "title": "Anna Petrova",
    "sents": [
        ["Anna", "Petrova", "lives", "\xa0", "in", "Novosibirsk", "."],
        ["In", "Omsk", "she", "met", "Peter", "Holt", ",", "of", "the", "Heron", "Club", "."],
    ],
    "entities": [
        {"type": "PER", "mentions": [{"sent": 0, "start": 0, "end": 2}]},
        {"type": "LOC", "mentions": [{"sent": 0, "start": 5, "end": 6}]},
        {"type": "LOC", "mentions": [{"sent": 1, "start": 1, "end": 2}]},
        {"type": "PER", "mentions": [{"sent": 1, "start": 4, "end": 6}]},
        {"type": "ORG", "mentions": [{"sent": 1, "start": 9, "end": 11}]},
    ],
    "relations": [{"h": 0, "r": "P551", "t": 1}, {"h": 3, "r": "P463", "t": 4}, {"h": 1, "r": "P1", "t": 4}],
}
SENTENCE: dict[str, Any] = {
    "domain": "birds",
    "tokens": ["The", "Grey", "Heron", "stands", "in", "Omsk", "."],
    "entities": [[1, 3, "species"], [5, 6, "place"]],
}


def write_lines(file: Path, *lines: Any) -> Path:
    """The folder of a new file with the lines as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    file.write_bytes(gzip.compress(text.encode()) if file.suffix == ".gz" else text.encode())
    return file.parent
