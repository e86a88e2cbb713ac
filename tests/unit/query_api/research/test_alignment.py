"""Claims held against sentences, word by word."""

import pytest

from query_api.research.alignment import Fit, fit

SAYS_SO, DENIES = Fit(None, opposite=False), Fit(None, opposite=True)


@pytest.mark.parametrize(
    ("claim", "sentence", "expected"),
    [
        ("Ann Bell was born in Leeds.", "Ann Bell was born in Leeds, in a mill.", SAYS_SO),
        ("Ann Bell was born in Leeds.", "She was born in Leeds.", SAYS_SO),  # of the document's subject
        ("Ann Bell was born in May 1954.", "She was born on 12 May 1954 in Leeds.", SAYS_SO),
        (
            "Ann Bell was born on 13 May 1954.",
            "She was born on May 12, 1954.",
            Fit(("13 May 1954", "May 12, 1954"), False),
        ),
        ("Ann Bell was born on 12 May 1954.", "She was born in 1954.", None),  # which says less
        ("Ann Bell was born in Leeds.", "Ann Bell was not born in Leeds.", DENIES),
        ("Ann Bell was not born in Leeds.", "Ann Bell was born in Leeds.", DENIES),
        ("Ann Bell was born in Leeds.", "Ann Bell was born in York.", Fit(("Leeds", "York"), False)),
        ("Ann Bell was born in York.", "Ann Bell was born in New York.", None),
        ("Ann Bell was born in York.", "Ann Bell, who lived in Leeds, met Ben Marsh, who was born in York.", None),
        ("Ann Bell was born in York.", "Ann Bell may have been born in York.", None),
        ("Ann Bell was born in York.", "Was Ann Bell born in York?", None),
        ("The firm has 300 employees.", "The firm has 400 employees.", Fit(("300", "400"), False)),
        ("The firm has 300 employees.", "The firm has about 400 employees.", None),
        ("The firm has 300 employees.", "The firm has 300 employees and 400 in winter.", SAYS_SO),
        ("The firm has 300 employees.", "The firm has 30% employees.", None),
        ("Ben Marsh defeated Ann Bell.", "Ann Bell defeated Ben Marsh.", None),
        ("twelve wooden piers", "It has twelve wooden piers.", None),  # no verb
        ("Ann Bell", "Ann Bell", None),
        ("the of and", "the of and", None),
        ("Der Fluss ist tief", "Le fleuve est long", None),
    ],
)
def test_sentence_says_denies_or_differs_in_one_value(claim: str, sentence: str, expected: Fit | None) -> None:
    assert fit(claim, sentence, "Ann Bell (painter)") == expected


def test_a_long_claim_is_left_undecided_at_once() -> None:
    assert fit("Ann Bell was born. " * 100, "Ann Bell was born. " * 100, "Ann Bell") is None
