"""What an evaluation found: frozen, complete, and the same as JSON. Reports are made of it and of nothing else."""

from collections.abc import Mapping

import msgspec

from query_api.evaluation.metrics.calibration import Calibration
from query_api.evaluation.metrics.diversity import Diversity
from query_api.evaluation.metrics.latency import Spread
from query_api.evaluation.metrics.thresholds import Threshold
from query_api.evaluation.metrics.uncertainty import Difference, Interval
from schemas.filters import Group


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """How a corpus came to be searchable: `sent` documents were published now, the others were there.

    `missing` were published and are not there all the same: dead letters. `token` covers the whole corpus. Where a
    collection is searched that was there before, nothing was sent and `token` is empty.
    """

    collection: str
    documents: int
    sent: int
    missing: tuple[str, ...]
    token: str
    seconds: float


class QuestionFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One question in one approach: the documents of its hits, best first, and the value of each measure."""

    question_id: str
    question: str
    documents: tuple[str, ...]
    measures: Mapping[str, float]


class ApproachFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`measures` are means over the questions with their intervals. `calibration` is null where no hit carries a
    confidence, `left_out_calibration`, by what the evaluation's other sets teach, also where there is no other set.
    `failed_channels` counts answers that a channel was missing from: figures to be read with care."""

    name: str
    about: str
    measures: Mapping[str, Interval]
    latencies: Mapping[str, Spread]
    calibration: Calibration | None
    left_out_calibration: Calibration | None
    thresholds: tuple[Threshold, ...]
    diversity: Diversity
    failed_channels: Mapping[str, int]
    questions: tuple[QuestionFindings, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Approach `ours` minus `theirs` on the same questions; `adjusted_p` is p by Holm over the pairs of the measure."""

    measure: str
    ours: str
    theirs: str
    difference: Difference
    adjusted_p: float


class AgainstBaselines(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the first approach minus that of the baseline that is best on this collection by this measure."""

    measure: str
    ours: str
    best: str
    difference: float


class KindFindings(msgspec.Struct, frozen=True, kw_only=True):
    """The questions whose metadata name one `kind`: {approach: {measure: mean with its interval}}.

    `against_best` is the first approach minus the single channel that is best on these very questions, a choice that
    favours the channel; empty where the first is a channel itself, or no channel was asked.
    """

    kind: str
    questions: int
    measures: Mapping[str, Mapping[str, Interval]]
    against_best: tuple[Comparison, ...]


class CollectionFindings(msgspec.Struct, frozen=True, kw_only=True):
    """`documents` and `questions` as the folder has them; `asked` of its questions were put.

    `unfilled` documents have neither text nor title and were not published; `title_only` ones have no text.
    `loaded` tells of the collection in the service, which a pool shares. `kinds` are empty
    where no question's metadata names one. `against_baselines` is empty where no baseline was asked, or the first
    approach is one. `not_offered` is {approach: why the service refused it},
    `not_measured` {approach: why most of its answers were not its own}; neither has figures.
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
    kinds: tuple[KindFindings, ...]
    against_baselines: tuple[AgainstBaselines, ...]
    not_offered: Mapping[str, str]
    not_measured: Mapping[str, str]

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
