"""Channels fused into one order, and how many hits may have something in common."""

import numpy as np
import pytest

from query_api.index.text.text_segments import Candidate
from query_api.retrieval.exact_scores import CandidateScores
from query_api.retrieval.fusion import (
    DEPTH,
    ChannelResults,
    FusionWeights,
    HitLimit,
    RankedPassage,
    apply_limits,
    rank_passages,
)
from schemas.choices import Fusion, Mode
from schemas.filters import Group
from schemas.ids import DocumentKey

WEIGHTS = FusionWeights()


def found(passage: str, score: float, chunk: str | None = None, document: str | None = None) -> Candidate:
    key = DocumentKey("c", document or passage)
    return Candidate(passage, score, key, chunk)


def compared(held: dict[str, tuple[float, float, list[bool]]]) -> CandidateScores:
    """{passage: its cosine, its BM25, which terms it holds}; words weigh a sixteenth of BM25."""
    return CandidateScores(
        {name: row for row, name in enumerate(held)},
        np.array([cosine for cosine, _, _ in held.values()]),
        np.array([bm25 / 16 for _, bm25, _ in held.values()]),
        np.array([terms for _, _, terms in held.values()]),
    )


def placed(
    what: ChannelResults,
    *,
    mode: Mode = "hybrid",
    group: Group = "passage",
    fusion: Fusion = "adaptive",
    weights: FusionWeights = WEIGHTS,
    first: int = 1_000,
) -> list[RankedPassage]:
    def document_of(passage: str) -> DocumentKey:
        return DocumentKey("c", passage)

    limits = [HitLimit.per_document(1)] if group == "document" else []
    return rank_passages(
        what, document_of, mode=mode, group=group, fusion=fusion, weights=weights, first=first, limits=limits
    )


def fuse(what: ChannelResults, **how: object) -> list[tuple[str, float]]:
    return [(place.chunk_id or place.passage_id, place.score) for place in placed(what, **how)]  # type: ignore[arg-type]


def names(what: ChannelResults, **how: object) -> list[str]:
    return [name for name, _ in fuse(what, **how)]


VECTOR = [found("a", 0.9), found("b", 0.8)]
KEYWORD = [found("c", 9.0), found("a", 3.0)]


def test_scores_are_added_as_they_are() -> None:
    """Where nothing was compared, a: .9 + .02 x 3; c: .02 x 9."""
    assert fuse(ChannelResults(VECTOR, KEYWORD, {})) == [
        ("a", pytest.approx(0.96)),
        ("b", pytest.approx(0.8)),
        ("c", pytest.approx(0.18)),
    ]


def test_what_was_compared_counts_with_both_scores_whichever_channel_found_it() -> None:
    """b: .8 + .01 x 20; c: .85 + .01 x 9."""
    rows = {"a": (0.9, 3.0, [True]), "b": (0.8, 20.0, [True]), "c": (0.85, 9.0, [True])}
    what = ChannelResults(VECTOR, KEYWORD, {}, exact=compared(rows), idf=np.ones(1))
    assert fuse(what) == [
        ("b", pytest.approx(1.0)),
        ("c", pytest.approx(0.94)),
        ("a", pytest.approx(0.93)),
    ]


def test_graph_scores_are_added_as_far_as_the_gate_is_open() -> None:
    graph = {"b": 0.4, "z": 0.7}
    assert fuse(ChannelResults(VECTOR, [], graph, gate=0.5)) == [
        ("b", pytest.approx(0.8 + 0.2)),
        ("a", pytest.approx(0.9)),
        ("z", pytest.approx(0.35)),
    ]
    assert fuse(ChannelResults(VECTOR, [], graph, gate=0.5), weights=FusionWeights(graph=2.0))[0] == (
        "b",
        pytest.approx(1.2),
    )
    assert names(ChannelResults(VECTOR, [], graph, gate=0.0)) == ["a", "b"]
    assert names(ChannelResults(VECTOR, [], graph, gate=1.0), weights=FusionWeights(graph=0.0)) == ["a", "b"]


def test_ranks_are_fused_by_reciprocal_ranks_relative_to_the_best() -> None:
    best = 1 / 61 + 1 / 62
    assert fuse(ChannelResults(VECTOR, KEYWORD, {"b": 9.9}), fusion="rrf") == [
        ("a", pytest.approx(1.0)),
        ("c", pytest.approx((1 / 61) / best)),
        ("b", pytest.approx((1 / 62) / best)),
    ]
    with_graph = fuse(ChannelResults(VECTOR, KEYWORD, {"b": 9.9}, gate=0.1), fusion="rrf")
    assert with_graph == [
        ("a", pytest.approx(1.0)),
        ("b", pytest.approx(1.0)),
        ("c", pytest.approx((1 / 61) / best)),
    ], "where the gate is open at all, the graph's is a list like the others"


def test_weighted_sums_what_min_max_makes_of_each_list() -> None:
    """Vector a 1, b 2/3, d 0; keyword c 1, a 0; graph b 1, d 0, by half: .7 x 2/3 + .5 = .9667 for b."""
    what = ChannelResults([*VECTOR, found("d", 0.6)], KEYWORD, {"b": 2.0, "d": 1.0}, gate=0.5)
    assert fuse(what, fusion="weighted") == [
        ("b", pytest.approx(0.7 * 2 / 3 + 0.5)),
        ("a", pytest.approx(0.7)),
        ("c", pytest.approx(0.3)),
        ("d", pytest.approx(0.0)),
    ]
    keyword_first = FusionWeights(vector=0.1, keyword=0.9, graph=0.0)
    assert fuse(what, fusion="weighted", weights=keyword_first)[0] == ("c", pytest.approx(0.9))


def test_rerank_orders_what_the_vector_channel_found_by_the_graph() -> None:
    what = ChannelResults(VECTOR, KEYWORD, {"b": 0.4, "z": 0.7}, gate=0.5)
    assert fuse(what, mode="graph_rerank") == [("b", pytest.approx(1.0)), ("a", pytest.approx(0.9))]
    first = placed(what, mode="graph_rerank")[0]
    assert (first.scores, first.ranks) == ({"vector": 0.8, "graph": 0.4}, {"vector": 2, "graph": 2})
    assert fuse(what._replace(gate=0.0), mode="graph_rerank") == [("a", 0.9), ("b", 0.8)]


def test_one_channel_alone_keeps_its_order_and_scores() -> None:
    what = ChannelResults([found("a", 0.9)], [found("b", 7.5)], {"c": 1.25}, [found("d", 0.5)])
    assert fuse(what, mode="vector") == [("a", 0.9)]
    assert fuse(what, mode="keyword") == [("b", 7.5)]
    assert fuse(what, mode="graph") == [("c", 1.25)]
    assert fuse(what, mode="structured") == [("d", 0.5)]


BESIDE_EACH_OTHER = {
    "a": (0.9, 0.0, [True, False]),
    "b": (0.8, 0.0, [True, False]),
    "c": (0.6, 0.0, [False, True]),
}


def test_the_first_places_cover_the_question_together() -> None:
    """After a, which holds the first word: b brings .8 / .9 = .889, c .6 / .9 + .5 x .5 = .917. No score rises."""
    vector = [*VECTOR, found("c", 0.6)]
    what = ChannelResults(vector, [], {}, gate=1.0, exact=compared(BESIDE_EACH_OTHER), idf=np.ones(2))
    assert fuse(what) == [("a", pytest.approx(0.9)), ("c", pytest.approx(0.6)), ("b", pytest.approx(0.6))]
    assert names(what, fusion="rrf") == ["a", "b", "c"], "only scores are weighed against words"
    assert names(what._replace(gate=0.5)) == ["a", "b", "c"], "documents that do not lead to each other answer alone"
    assert names(what._replace(idf=np.zeros(2))) == ["a", "b", "c"], "words that nobody holds tell nothing"


def test_covering_counts_on_no_more_than_what_stands_first_whatever_page_is_asked_for() -> None:
    """The second document covers more, yet it is the second of two pages of one as of one page of two."""
    vector = [found(name, cosine, document=name) for name, (cosine, _, _) in BESIDE_EACH_OTHER.items()]
    what = ChannelResults(vector, [], {}, gate=1.0, exact=compared(BESIDE_EACH_OTHER), idf=np.ones(2))
    for first in (1, 2, 3):
        assert names(what, group="document", first=first) == ["a", "c", "b"][:first]


def test_deeper_candidates_change_nothing_in_the_cover_of_the_first() -> None:
    """Sixty-four chunks of two documents leave room among the first twenty, and what comes deeper does not take it."""
    shallow = [
        found(f"{name}{at:02}", cosine - at / 1000, document=name)
        for name, cosine in (("a", 0.9), ("b", 0.8))
        for at in range(DEPTH // 2)
    ]
    deeper = [*shallow, found("c00", 0.6)]
    held = {
        each.passage_id: (each.score, 0.0, [each.passage_id[0] != "c", each.passage_id == "c00"]) for each in deeper
    }
    what = ChannelResults(shallow, [], {}, gate=1.0, exact=compared(held), idf=np.ones(2))
    assert names(what, group="document") == ["a00", "b00"]
    assert names(what._replace(vector=deeper), group="document") == ["a00", "b00", "c00"]


def test_a_passage_stands_by_its_best_chunk_and_further_chunks_only_where_chunks_are_asked_for() -> None:
    vector = [found("p", 0.9, "c1"), found("q", 0.8, "c2"), found("p", 0.7, "c3")]
    assert names(ChannelResults(vector, [], {})) == ["c1", "c2"]
    assert names(ChannelResults(vector, [], {}), group="chunk") == ["c1", "c2", "c3"]


def test_a_further_chunk_has_its_own_cosine_and_no_words() -> None:
    vector = [found("p", 0.9, "c1"), found("p", 0.7, "c3")]
    what = ChannelResults(vector, [found("p", 10.0)], {}, exact=compared({"p": (0.9, 10.0, [True])}), idf=np.ones(1))
    assert fuse(what, group="chunk") == [("c1", pytest.approx(1.0)), ("c3", pytest.approx(0.7))]


def test_a_document_stands_by_its_best_passage() -> None:
    vector = [found("p1", 0.9, document="d"), found("p2", 0.8, document="d"), found("q", 0.7)]
    assert names(ChannelResults(vector, [], {}), group="document") == ["p1", "q"]


def test_a_document_has_its_next_two_passages_beside() -> None:
    vector = [found(f"p{at}", 0.9 - at / 10, document="d") for at in range(4)] + [found("q", 0.7)]
    what = ChannelResults(vector, [], {})
    assert [
        (place.passage_id, [each.passage_id for each in place.further]) for place in placed(what, group="document")
    ] == [
        ("p0", ["p1", "p2"]),
        ("q", []),
    ]
    assert {place.further for place in placed(what)} == {()}


def test_passages_far_below_the_best_of_a_document_are_not_beside_it() -> None:
    vector = [found("p", 0.9, document="d"), found("near", 0.45, document="d"), found("far", 0.44, document="d")]
    (place,) = placed(ChannelResults(vector, [], {}), group="document")
    assert [each.passage_id for each in place.further] == ["near"]


def test_deeper_candidates_give_a_document_no_other_passages() -> None:
    head = [found(f"h{number:02}", 1 - number / 1000, document=f"d{number // 2}") for number in range(DEPTH)]
    tail = [found(f"t{number:02}", 0.5 - number / 1000, document=f"d{number}") for number in range(40)]
    short = placed(ChannelResults(head, [], {}), group="document")
    long = placed(ChannelResults([*head, *tail], [], {}), group="document")
    assert long[: len(short)] == short
    assert {place.further for place in long[len(short) :]} == {()}


def test_deeper_candidates_append_to_the_order_and_scores_never_rise() -> None:
    head = [found(f"h{number:03}", 1 - number / 1000) for number in range(DEPTH)]
    tail = [found(f"t{number:03}", 0.5 - number / 1000) for number in range(50)]
    keyword = [found(candidate.passage_id, 9.0) for candidate in tail[:1]]
    short = fuse(ChannelResults(head, keyword, {}))
    long = fuse(ChannelResults([*head, *tail], keyword, {}))
    assert [name for name, _ in long[: len(short)]] == [name for name, _ in short]
    assert len(long) == DEPTH + 50
    assert fuse(ChannelResults([*head, *tail], keyword, {}), first=7) == long[:7]
    scores = [score for _, score in long]
    assert scores == sorted(scores, reverse=True)


def test_structured_candidates_are_added_as_far_as_the_channel_is_conclusive() -> None:
    def order(conclusiveness: float, mode: Mode = "hybrid") -> list[tuple[str, float, dict[str, int]]]:
        what = ChannelResults(VECTOR, [], {}, [found("z", 1.0), found("b", 0.5)], conclusiveness=conclusiveness)
        return [(place.passage_id, place.score, place.ranks) for place in placed(what, mode=mode)]

    assert order(1.0) == [
        ("z", pytest.approx(4.0), {"structured": 1}),
        ("b", pytest.approx(2.0 + 0.8), {"vector": 2, "structured": 2}),
        ("a", pytest.approx(0.9), {"vector": 1}),
    ]
    assert [name for name, _, _ in order(0.1)] == ["b", "a", "z"]
    assert [(name, ranks) for name, _, ranks in order(0.0)] == [("a", {"vector": 1}), ("b", {"vector": 2})]
    assert [(name, score) for name, score, _ in order(1.0, "structured")] == [("z", 1.0), ("b", 0.5)]


@pytest.mark.parametrize(("conclusiveness", "first"), [(0.9, "part"), (1.0, "all")])
def test_what_has_all_the_fields_stays_before_what_holds_more_words_once_fields_decide(
    conclusiveness: float, first: str
) -> None:
    rows = {"all": (0.5, 0.0, [False, False]), "part": (0.5, 0.0, [True, True])}
    vector = [found("all", 0.5), found("part", 0.5)]
    exact = [found("all", 1.0), found("part", 0.8)]
    what = ChannelResults(vector, [], {}, exact, 1.0, conclusiveness, compared(rows), np.ones(2))
    assert names(what)[0] == first


def test_equal_weighted_scores_stand_by_their_text() -> None:
    """All that counts is a graph whose gate is closed: every score is 0."""
    vector = [found("z", 0.66), found("m", 0.6), found("a", 0.57)]
    weights = FusionWeights(vector=0, keyword=0)
    assert fuse(ChannelResults(vector, [], {}), fusion="weighted", weights=weights) == [
        ("z", 0.0),
        ("m", 0.0),
        ("a", 0.0),
    ]
    both = ChannelResults(vector, [found("m", 9.0), found("k", 7.0)], {})
    assert names(both, fusion="weighted", weights=FusionWeights(vector=0, keyword=1)) == ["m", "z", "a", "k"]


AUTHORS = {"a": ("ann",), "b": ("ann", "bo"), "c": ("bo",), "d": ("ann",), "e": ()}
PER_AUTHOR = HitLimit(2, lambda key: AUTHORS[key.document_id])


def kept(order: str, *limits: HitLimit, first: int | None = None) -> str:
    return "".join(apply_limits(limits, order, lambda name: DocumentKey("c", name), first))


def test_the_first_of_those_that_share_a_value_stay() -> None:
    assert kept("abcd", PER_AUTHOR) == "abc"
    assert kept("dcba", PER_AUTHOR) == "dcb"


def test_what_was_left_out_takes_no_room_from_others() -> None:
    """b would be the second of Bo, and the third of Ann: it goes, so c and its like stay two."""
    assert kept("adbcc", PER_AUTHOR) == "adcc"


def test_what_has_no_value_is_not_limited() -> None:
    assert kept("eeee", PER_AUTHOR) == "eeee"


def test_every_limit_counts() -> None:
    assert kept("aabbcce", PER_AUTHOR, HitLimit.per_document(1)) == "abce"


def test_the_beginning_is_that_of_the_whole() -> None:
    whole = kept("abcdeabcde", PER_AUTHOR)
    assert [kept("abcdeabcde", PER_AUTHOR, first=first) for first in range(1, 6)] == [
        whole[:first] for first in range(1, 6)
    ]
    assert kept("abc") == "abc"
