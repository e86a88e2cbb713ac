"""Approaches whose answers are not theirs: what makes them was left out, so that what came back is another approach's.

A search goes on without a re-ranker or a channel that does not answer, which is right for who searches. An evaluation
would show the figures of what was left under the name of what was asked.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from query_api.evaluation.answers import Asked
from query_api.evaluation.approaches import Approach
from schemas.errors import Failure

MOST_MISSING = 0.5
"""An approach that lacks what it needs in a greater share of its answers than this has no figures."""


def not_measured(approaches: Sequence[Approach], answers: Mapping[str, Sequence[Asked]]) -> dict[str, str]:
    """{approach: why it has no figures}, of those most of whose answers came without a step that they need.

    Raises Failure when that is all of them, with the reason of the first.
    """
    reasons = {each.name: reason for each in approaches if (reason := _lacking(each, answers[each.name])) is not None}
    if approaches and len(reasons) == len(approaches):
        raise Failure(f"No approach was measured. {approaches[0].name}: {reasons[approaches[0].name]}")
    return reasons


def _lacking(approach: Approach, answers: Sequence[Asked]) -> str | None:
    """What most answers lack and the reason that came most often, in a sentence; None where there is no such thing."""
    for step in approach.needs:
        told = Counter(answer.failed_channels[step] for answer in answers if step in answer.failed_channels)
        if told.total() > MOST_MISSING * len(answers):
            (reason, _), *_ = told.most_common(1)
            return f"{told.total():,} of {len(answers):,} answers came without its step {step!r}: {reason.rstrip('.')}."
    return None
