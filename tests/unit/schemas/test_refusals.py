"""What people are told of each reason of a refusal."""

from typing import get_args

import pytest

from schemas.errors import DeadLetterReason
from schemas.refusals import EXPLANATIONS, explanation


def test_each_reason_is_explained_once_in_words_of_its_own() -> None:
    assert set(EXPLANATIONS) == set(get_args(DeadLetterReason))
    titles = [each.title for each in EXPLANATIONS.values()]
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize("reason", get_args(DeadLetterReason))
def test_a_title_is_a_few_words_and_an_advice_is_sentences(reason: str) -> None:
    title, advice = explanation(reason)
    assert title[0].isupper()
    assert not title.endswith(".")
    assert len(title) <= 50
    assert advice[0].isupper()
    assert advice.endswith(".")


def test_a_reason_that_another_program_made_up_is_shown_as_a_refusal() -> None:
    assert explanation("unheard_of").title == "Refused"
