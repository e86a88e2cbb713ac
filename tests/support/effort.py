"""How hard the randomised tests try: enough for a commit; with `THOROUGH=1` for a night, with 0.1 for a tenth of that.

`THOROUGH=1 .venv/bin/pytest tests/unit/indexer/fuzzing tests/unit/streams/indexing/test_histories.py`
"""

import os


def examples(usual: int, thorough: int) -> int:
    """How many examples a test tries."""
    return max(usual, round(thorough * float(os.environ.get("THOROUGH", "0"))))
