"""What people read says what a textbook says: words that only a reader of this project would know stay out."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTEAD = {
    r"mend(s|ed|ing)?": "repair",
    r"anew": "again",
    r"(rules|settings|choice) of now": "current",
    r"hangs? together": "is connected",
}
PLACES = (
    *("indexer/**/*.py", "kafka_client/**/*.py", "query_api/**/*.py", "schemas/**/*.py", "streams/**/*.py", "*.py"),
    *("query_api/console/src/**/*.svelte", "query_api/console/src/**/*.ts", "*.md", "docs/*.md", "docs/runbooks/*.md"),
)


@pytest.mark.parametrize("words", INSTEAD)
def test_private_words_stay_out(words: str) -> None:
    private = re.compile(rf"(?<![a-z]){words}(?![a-z])", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for place in PLACES
        for path in sorted(ROOT.glob(place))
        if "node_modules" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if private.search(line)
    ]
    assert not found, f"Say: {INSTEAD[words]}"
