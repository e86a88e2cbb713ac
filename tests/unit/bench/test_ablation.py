"""What an ablation says of the law, and what it takes."""

from pathlib import Path

from tests.bench.ablation import gain_of, labelled_set, law_of


def test_the_law_is_broken_by_more_than_a_point_below_the_best() -> None:
    figures = {
        "hybrid": {"nDCG@10": 50.0, "R@5": 40.0},
        "vector": {"nDCG@10": 51.0, "R@5": 30.0},
        "keyword": {"nDCG@10": 20.0, "R@5": 41.5},
    }
    assert law_of(figures) == "nDCG@10 -1.0 to vector (holds), R@5 -1.5 to keyword (BROKEN)"


def test_other_versions_of_the_engine_are_not_the_best_other() -> None:
    figures = {"hybrid": {"P@1": 50.0}, "vector": {"P@1": 45.0}, "without graph": {"P@1": 60.0}}
    assert law_of(figures) == "P@1 +5.0 to vector (holds)"


def test_a_part_gains_what_is_lost_without_it() -> None:
    figures = {
        "hybrid": {"P@1": 0.0, "nDCG@10": 50.0, "R@5": 40.0},
        "without graph": {"P@1": 9.0, "nDCG@10": 48.0, "R@5": 40.0},
    }
    assert gain_of("graph", figures) == 1.0


def test_a_file_of_questions_is_a_set_named_by_its_collection(tmp_path: Path) -> None:
    file = tmp_path / "questions.tsv"
    file.write_text("Who sings?\ta.md\nWho swims?\t\n")
    found = labelled_set(f"{file}=folder-birds", None)
    assert (found.labelled.name, found.collection) == ("folder-birds", "folder-birds")
    assert [question.text for question in found.questions] == ["Who sings?"]
