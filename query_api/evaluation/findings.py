"""What an evaluation found: frozen, complete, and the same as JSON. Reports are made of it and of nothing else."""

from collections.abc import Mapping

import msgspec

from query_api.evaluation.figures.calibration import Calibration
from query_api.evaluation.figures.latency import Spread
from query_api.evaluation.figures.uncertainty import Difference, Interval
from query_api.evaluation.loading import Loaded
from schemas.api import Group


class QuestionFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One question in one approach: the documents of its hits, best first, and the value of each measure."""

    question_id: str
    question: str
    documents: tuple[str, ...]
    measures: Mapping[str, float]


class ApproachFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`measures` are means over the questions with their intervals. `calibration` is null where no hit carries a
    confidence. `failed_channels` counts answers that a channel was missing from: figures to be read with care."""

    name: str
    about: str
    measures: Mapping[str, Interval]
    latencies: Mapping[str, Spread]
    calibration: Calibration | None
    failed_channels: Mapping[str, int]
    questions: tuple[QuestionFindings, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Approach `ours` minus `theirs` on the same questions; `adjusted_p` is p by Holm over the pairs of the measure."""

    measure: str
    ours: str
    theirs: str
    difference: Difference
    adjusted_p: float


class CollectionFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`documents` and `questions` as the folder has them; `asked` of its questions were put.

    `unfilled` documents have neither text nor title and were not published; `title_only` ones have no text. `loaded`
    tells of the collection in the service, which a pool shares.
    """

    name: str
    split: str
    documents: int
    unfilled: int
    title_only: int
    questions: int
    asked: int
    loaded: Loaded
    approaches: tuple[ApproachFindings, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def main_measure(self) -> str:
        """The measure that approaches are ranked by: nDCG at its deepest cutoff."""
        names = next(iter(self.approaches)).measures
        return next(name for name in reversed(list(names)) if name.startswith("nDCG@"))


class ServiceFacts(msgspec.Struct, frozen=True):
    """Which service was asked."""

    version: str
    generation: str | None
    embedding_model: str | None


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """`group` is what a hit stands for; `made_at` is RFC 3339."""

    made_at: str
    service: ServiceFacts
    k: int
    group: Group
    lower_case: bool
    pool: str | None
    level: float
    resamples: int
    collections: tuple[CollectionFindings, ...]
