"""What people read says what a textbook says: words that only a reader of this project would know stay out."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTEAD = {  # words in docstrings, messages, comments, identifiers and pages -> what to say instead
    r"mend(s|ed|ing)?": "repair",
    r"anew": "again",
    r"(rules|settings|choice) of now": "current",
    r"hangs? together": "is connected",
    r"told|(?<!\.)(?<!Kiss and )tells?|telling": "report, return, show, state",
    r"stands?(?! for|[ _]by| in )": "is, is at, is in",
    r"(?<!look-)alike": "equal, the same, similar",
    r"by (itself|themselves)": "automatically, alone, separately",
    r"as people see them": "as shown",
    r"(?<!not )taken? away|takes away": "delete, remove",
    r"how far (it|each|that|those) (is|are)": "its progress",
    r"hand(s|ed|ing)? (on|over)": "pass",
    r"go(es|ne|ing)? on (with|from|by)|went on": "continue",
    r"whoever": "who, a reader, a caller",
    r"held against": "compared with",
    r"carried over": "copied, sent as",
    r"(?<!there )(?<!where )(is|are) no (?!longer|more|such|other|room|way|need|less|later|newer|older)": "is not a",
}
PLACES = (
    *("indexer/**/*.py", "kafka_client/**/*.py", "query_api/**/*.py", "schemas/**/*.py", "streams/**/*.py", "*.py"),
    *("query_api/console/src/**/*.svelte", "query_api/console/src/**/*.ts", "*.md", "docs/*.md", "docs/runbooks/*.md"),
    "docs/adr/gaps/*.md",
)
WORD_LISTS = (  # of English, for the reading of texts and questions
    *("indexer/extraction/lexicon.py", "indexer/extraction/prose/word_classes.py"),
    *("indexer/extraction/prose/predicates.py", "query_api/query/analysis.py", "query_api/query/decomposition.py"),
    *("query_api/query/field_constraints.py", "query_api/retrieval/retrievers/community_retriever.py"),
)


@pytest.mark.parametrize("words", INSTEAD)
def test_private_words_stay_out(words: str) -> None:
    private = re.compile(rf"(?<![a-z])({words})(?![a-z])", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for place in PLACES
        for path in sorted(ROOT.glob(place))
        if "node_modules" not in path.parts and str(path.relative_to(ROOT)) not in WORD_LISTS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if private.search(line)
    ]
    assert not found, f"Say: {INSTEAD[words]}"
