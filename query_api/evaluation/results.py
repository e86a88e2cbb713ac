"""The results of an evaluation, from one answer to the whole report: frozen data, the same as `report.json`."""

from collections.abc import Mapping

import msgspec

from schemas.filters import Group


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What one search returned: the documents, scores and confidences of its hits, best first, and seconds: `stages`
    as the service reports them, the others as the client measured them."""

    question_id: str
    documents: tuple[str, ...]
    scores: tuple[float, ...]
    confidences: tuple[float | None, ...]
    stages: Mapping[str, float]
    first_hit_seconds: float | None
    seconds: float
    failed_channels: Mapping[str, str]


class Interval(msgspec.Struct, frozen=True):
    """A mean with the bounds of its bootstrap confidence interval."""

    mean: float
    low: float
    high: float


class Difference(msgspec.Struct, frozen=True):
    """A mean paired difference with its interval, and the two-sided p-value of there being none."""

    mean: float
    low: float
    high: float
    p: float


class Spread(msgspec.Struct, frozen=True):
    """Quantiles of seconds, over the `answers` that had the step."""

    answers: int
    p50: float
    p95: float


class ReliabilityBin(msgspec.Struct, frozen=True):
    """Hits with a confidence in (low, high]; the first bin takes 0 too. `right` is the share that is relevant."""

    low: float
    high: float
    hits: int
    confidence: float
    right: float


class Calibration(msgspec.Struct, frozen=True):
    """The expected calibration error, and the bins that are not empty."""

    hits: int
    expected_error: float
    bins: tuple[ReliabilityBin, ...]


class Threshold(msgspec.Struct, frozen=True):
    """Only hits of at least `at` shown: `kept` is their share of all hits, `precision` the share of them that is
    relevant, `recall` the share of the relevant hits that stays, `unanswered` that of the questions left without a
    hit."""

    at: float
    kept: float
    precision: float
    recall: float
    unanswered: float


class Diversity(msgspec.Struct, frozen=True):
    """Mean coverages over the questions that have hits; null where no document's metadata has the field."""

    sources: float | None
    categories: float | None
    years: float | None


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A corpus in the service: `sent` documents were published now, the others were there before.

    `missing` were published and not indexed: dead letters. `token` covers the whole corpus; empty where nothing was
    sent.
    """

    collection: str
    documents: int
    sent: int
    missing: tuple[str, ...]
    token: str
    seconds: float


class QuestionResult(msgspec.Struct, frozen=True, kw_only=True):
    """One question in one approach: the documents of its hits, best first, and the value of each measure."""

    question_id: str
    question: str
    documents: tuple[str, ...]
    measures: Mapping[str, float]


class ApproachResult(msgspec.Struct, frozen=True, kw_only=True):
    """`measures` are means over the questions. `calibration` is that of all hits, `first_hit_calibration` of the first
    hit of each question alone; both are null where no hit carries a confidence, `left_out_calibration`, which is learnt
    from the evaluation's other collections, also where there is none. `failed_channels` counts the answers without a
    channel."""

    name: str
    about: str
    measures: Mapping[str, Interval]
    latencies: Mapping[str, Spread]
    calibration: Calibration | None
    first_hit_calibration: Calibration | None
    left_out_calibration: Calibration | None
    thresholds: tuple[Threshold, ...]
    diversity: Diversity
    failed_channels: Mapping[str, int]
    questions: tuple[QuestionResult, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Approach `ours` minus `theirs` on the same questions; `adjusted_p` is p by Holm over the pairs of the measure."""

    measure: str
    ours: str
    theirs: str
    difference: Difference
    adjusted_p: float


class BaselineMargin(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of the first approach minus that of the baseline that is best on this collection by this measure."""

    measure: str
    ours: str
    best: str
    difference: float


class KindResult(msgspec.Struct, frozen=True, kw_only=True):
    """The questions whose metadata name one `kind`: {approach: {measure: mean with its interval}}.

    `against_best` is the first approach minus the single channel that is best on these very questions, a choice that
    favours the channel; empty where the first is a channel itself, or no channel was searched.
    """

    kind: str
    questions: int
    measures: Mapping[str, Mapping[str, Interval]]
    against_best: tuple[Comparison, ...]


class CollectionResult(msgspec.Struct, frozen=True, kw_only=True):
    """`documents` and `questions` count those of the folder, `asked` the questions that were searched.

    `unfilled` documents have neither text nor title and were not published; `title_only` ones have no text. `loaded`
    describes the collection in the service, which a pool shares. `kinds` and `against_baselines` may be empty.
    `not_offered` is {approach: why the service refused it}, `not_measured` {approach: why most of its answers were not
    its own}; neither has figures. `confidence_fitted_to` is the collection of this name that confidence was fitted to,
    if any: then its calibration here is not one on unknown questions.
    """

    name: str
    split: str
    documents: int
    unfilled: int
    title_only: int
    questions: int
    asked: int
    loaded: Loaded
    approaches: tuple[ApproachResult, ...]
    comparisons: tuple[Comparison, ...]
    kinds: tuple[KindResult, ...]
    against_baselines: tuple[BaselineMargin, ...]
    not_offered: Mapping[str, str]
    not_measured: Mapping[str, str]
    confidence_fitted_to: str | None

    @property
    def main_measure(self) -> str:
        """The measure that approaches are ranked by: nDCG at its deepest cutoff."""
        return next(name for name in reversed(list(self.approaches[0].measures)) if name.startswith("nDCG@"))


class ServiceFacts(msgspec.Struct, frozen=True):
    """Which service was evaluated."""

    version: str
    generation: str | None
    embedding_model: str | None


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """`group` is the unit of a hit; `made_at` is RFC 3339."""

    made_at: str
    service: ServiceFacts
    k: int
    group: Group
    lower_case: bool
    pool: str | None
    level: float
    resamples: int
    collections: tuple[CollectionResult, ...]
