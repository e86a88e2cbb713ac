"""What a page of hits may be, for whoever needs no more of the API than that: commands import this at every start."""

from typing import Literal

Group = Literal["passage", "chunk", "document"]

MAX_HITS = 1_000
