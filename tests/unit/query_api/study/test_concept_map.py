"""Concept maps as Mermaid text; `tests/integration/mermaid` has Mermaid itself read them."""

from query_api.study import concept_map
from query_api.study.concept_map import mermaid


def test_labels_are_quoted_and_signs_are_coded() -> None:
    text = mermaid(['A "b" <i>', "C++"], [(0, "is_a", 1)])
    assert text == ('flowchart LR\n  n0["A #34;b#34; #60;i#62;"]\n  n1["C#43;#43;"]\n  n0 -->|"is#95;a"| n1\n')


def test_a_long_or_empty_label_is_cut_or_has_a_sign() -> None:
    lines = mermaid(["x" * 500, " \n"], []).splitlines()
    assert len(lines[1]) < 100
    assert lines[2] == '  n1["#8230;"]'


def test_a_line_that_does_not_fit_gets_plain_labels_and_else_is_left_out(monkeypatch: object) -> None:
    kept = concept_map._coded
    concept_map._coded = lambda label: label  # type: ignore[assignment]
    try:
        text = mermaid(['a"]; click n0 "x', "b", "…"], [(0, "to", 1), (1, "to", 9), (2, "(", 0)])
    finally:
        concept_map._coded = kept
    assert text == ('flowchart LR\n  n0["a click n0 x"]\n  n1["b"]\n  n2["x"]\n  n0 -->|"to"| n1\n  n2 -->|"x"| n0\n')
