"""What an ablation tells of the law."""

from tests.bench.ablation import law_of


def test_the_law_is_broken_by_more_than_a_point_below_the_best() -> None:
    figures = {
        "hybrid": {"nDCG@10": 50.0, "R@5": 40.0},
        "vector": {"nDCG@10": 51.0, "R@5": 30.0},
        "keyword": {"nDCG@10": 20.0, "R@5": 41.5},
    }
    assert law_of(figures) == "nDCG@10 -1.0 to vector (holds), R@5 -1.5 to keyword (BROKEN)"
