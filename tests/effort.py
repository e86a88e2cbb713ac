"""How hard the randomised tests try: enough for every commit, or, with `THOROUGH=1`, for a night."""

import os


def examples(usual: int, thorough: int) -> int:
    """How many examples a test tries."""
    return thorough if os.environ.get("THOROUGH") else usual
