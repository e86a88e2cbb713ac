"""Agreement, B-cubed and joined pairs, against numbers worked by hand."""

import pytest

from query_api.evaluation.graph_metrics import Agreement, BCubed, DocumentGraph, agreement_by, recalled_pairs


def test_agreement_worked_by_hand() -> None:
    """Found 3, labelled 4, of which 2 are the same: precision 2/3, recall 2/4, F1 2 x 2 / (3 + 4)."""
    agreement = Agreement.of([(0, 4), (5, 9), (10, 12), (0, 4)], [(0, 4), (5, 9), (10, 11), (20, 22)])
    assert agreement == Agreement(right=2, found=3, labelled=4)
    assert agreement.precision == pytest.approx(2 / 3)
    assert agreement.recall == pytest.approx(1 / 2)
    assert agreement.f1 == pytest.approx(4 / 7)
    assert agreement.plus(Agreement(1, 1, 1)) == Agreement(3, 4, 5)


def test_nothing_found_or_labelled_is_no_division() -> None:
    nothing = Agreement.of([], [])
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)
    assert BCubed().f1 == 0


def test_a_right_span_of_another_type_is_wrong_in_both_types() -> None:
    by_type = agreement_by([((0, 4), "PER"), ((5, 9), "LOC")], [((0, 4), "PER"), ((5, 9), "ORG")])
    assert by_type == {"LOC": Agreement(0, 1, 0), "ORG": Agreement(0, 0, 1), "PER": Agreement(1, 1, 1)}


def test_b_cubed_worked_by_hand() -> None:
    """Labelled {1 2 3} {4}; found {1 2} {3 4}.

    Precision: 1, 1, 1/2, 1/2, mean 3/4. Recall: 2/3, 2/3, 1/3, 1, mean 2/3.
    """
    measured = BCubed()
    measured.add(["a", "a", "b", "b"], [1, 1, 1, 2])
    assert measured.mentions == 4
    assert measured.precision == pytest.approx(3 / 4)
    assert measured.recall == pytest.approx(2 / 3)
    assert measured.f1 == pytest.approx(2 * 3 / 4 * 2 / 3 / (3 / 4 + 2 / 3))


def test_entities_of_two_documents_are_never_one() -> None:
    measured = BCubed()
    measured.add(["a"], [1])
    measured.add(["a"], [1])
    assert (measured.precision, measured.recall) == (1, 1)


@pytest.mark.parametrize(
    ("graph", "joined"),
    [
        (DocumentGraph({0: [3], 1: [3]}), 1),
        (DocumentGraph({0: [3], 1: [4]}), 0),
        (DocumentGraph({0: [3]}), 0),
        (DocumentGraph({}, joined={(0, 1)}), 1),
        (DocumentGraph({1: [4]}, about={0}), 1),
        (DocumentGraph({}, about={0}), 0),
    ],
    ids=["one chunk", "two chunks", "one is not found", "a statement", "about one", "the other is not found"],
)
def test_what_joins_a_pair(graph: DocumentGraph, joined: int) -> None:
    assert recalled_pairs(graph, [(1, 0)]) == (joined, 1)


def test_a_pair_with_two_relations_counts_once_and_one_with_itself_never() -> None:
    graph = DocumentGraph({0: [1], 1: [1], 2: [2]})
    assert recalled_pairs(graph, [(0, 1), (1, 0), (0, 2), (2, 2)]) == (1, 2)
