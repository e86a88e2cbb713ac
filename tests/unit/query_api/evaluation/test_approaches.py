"""Approaches by name."""

from typing import get_args

import pytest

from query_api.evaluation.approaches import APPROACHES, approaches_named
from schemas.errors import WrongSetting
from schemas.search import Mode, SearchRequest


def test_all_are_taken_where_none_is_named_else_those_in_order() -> None:
    assert [each.name for each in approaches_named([])] == list(APPROACHES)
    assert [each.name for each in approaches_named(["graph", "vector", "graph"])] == ["graph", "vector"]


def test_an_unknown_one_is_refused_with_those_there_are() -> None:
    with pytest.raises(WrongSetting, match="no approach 'magic'; choose --approach from hybrid, vector"):
        approaches_named(["magic"])


@pytest.mark.parametrize("name", APPROACHES)
def test_each_is_a_search_the_service_takes(name: str) -> None:
    parameters = APPROACHES[name].parameters
    if parameters.keys() - SearchRequest.model_fields.keys() or parameters["mode"] not in get_args(Mode):
        pytest.skip(f"this service does not offer {name}: an evaluation says so and leaves it out")
    SearchRequest.model_validate({"q": "?", **parameters})
