"""spaCy's labels as entity types; the library itself is an optional extra."""

from types import SimpleNamespace
from typing import get_args

import pytest

from indexer.extraction.extractor import AnsweredEntity
from indexer.extraction.spacy_model import ENTITY_TYPE_OF_LABEL, LazyPipeline, SpacyModel, spacy_version
from schemas.graph_delta import EntityType


def test_labels_become_types_and_unknown_ones_are_left_out() -> None:
    spans = [("Ann Lee", "PERSON"), ("Basel", "GPE"), ("40", "CARDINAL"), ("what", "NEW_LABEL")]
    found = SimpleNamespace(ents=[SimpleNamespace(text=text, label_=label) for text, label in spans])
    answer = SpacyModel(lambda _text: found, "spacy:test").extract("any text", [])
    assert answer.entities == [
        AnsweredEntity("Ann Lee", "person"),
        AnsweredEntity("Basel", "place"),
        AnsweredEntity("40", "number"),
    ]
    assert answer.statements is None
    assert set(ENTITY_TYPE_OF_LABEL.values()) <= {*get_args(EntityType), "number"}


@pytest.mark.skipif(spacy_version() is None, reason="the extra thalweg[spacy] is not installed")
def test_the_model_finds_people_and_places() -> None:
    model = SpacyModel(LazyPipeline(), spacy_version() or "")
    answer = model.extract("Ann Lee of Siemens moved to Basel in March 2024.", [])
    assert AnsweredEntity("Ann Lee", "person") in answer.entities
    assert AnsweredEntity("Basel", "place") in answer.entities
