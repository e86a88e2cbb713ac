"""Sentences that deny something, and what they would state."""

import numpy as np
import pytest

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.extraction.prose.simplification import affirmed, plain
from indexer.linking import contribution
from schemas.events import DocumentUpsert
from schemas.graph_delta import DENIAL
from schemas.ids import DocumentKey

Triples = list[tuple[str, str, str]]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Marsh does not use Delta.", "Marsh uses Delta."),
        ("Turbines don't require a tower.", "Turbines require a tower."),
        ("Marsh did not acquire Heron.", "Marsh acquires Heron."),
        ("Marsh is no longer owned by Ann.", "Marsh is owned by Ann."),
        ("Marsh never uses Delta.", "Marsh uses Delta."),
        ("Marsh uses no Delta.", "Marsh uses Delta."),
        ("A whale isn't a fish.", "A whale is a fish."),
        ("Marsh uses Delta.", None),
        ("Marsh does not always use Delta.", None),
        ("Marsh is not only a service.", None),
        ("Marsh does not use Delta and never uses Heron.", None),
    ],
)
def test_denial_is_turned_into_what_it_denies(sentence: str, expected: str | None) -> None:
    assert affirmed(sentence) == expected


@pytest.mark.parametrize(
    ("text", "stated", "denied"),
    [
        ("Marsh does not use Delta.", [], [("Marsh", "uses", "Delta")]),
        (
            "Marsh requires Redis, and does not require Delta.",
            [("Marsh", "requires", "Redis")],
            [("Marsh", "requires", "Delta")],
        ),
        (
            "Marsh is a service. It is not owned by Ann Bell.",
            [("Marsh", "is_a", "service")],
            [("Ann Bell", "owns", "Marsh")],
        ),
        ("Paris is not the capital of Spain.", [], [("Paris", "capital_of", "Spain")]),
        ("If Marsh does not use Delta, it is slow.", [], []),
        ("Does Marsh not use Delta?", [], []),
        ("Marsh may not use Delta.", [], []),
        (
            "Marsh uses Delta. Marsh does not use Delta.",
            [("Marsh", "uses", "Delta")],
            [("Marsh", "uses", "Delta")],
        ),
    ],
)
def test_denials_are_kept_apart_from_statements(text: str, stated: Triples, denied: Triples) -> None:
    upsert = DocumentUpsert(key=DocumentKey("a", "x"), content=text.encode(), content_type="text/plain")
    prepared = prepare(upsert, ChunkingParameters())
    facts = [
        [(each.roles[0][2], each.predicate, each.roles[1][2]) for each in found]
        for found in (prepared.statements, prepared.denials)
    ]
    assert facts == [stated, denied]
    whole = contribution(prepared, np.ones((len(prepared.chunked.chunks), 1), dtype=np.float32))
    assert sorted(each.extractor == DENIAL for each in whole.statements) == [False] * len(stated) + [True] * len(denied)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Both copper and silver conduct heat.", "copper and silver conduct heat."),
        ("Both are slow.", "Both are slow."),
        ("Marsh uses not only Delta but also Heron.", "Marsh uses Delta and Heron."),
        ("Marsh builds on Delta as well as Heron.", "Marsh builds on Delta and Heron."),
        ("All of our tasters drink cider.", "the tasters drink cider."),
        ("Slates, by contrast, outlast tiles.", "Slates outlast tiles."),
        ("It was at a regatta in 1931 that Ada Moss met Ben.", "Ada Moss met Ben."),
        ("It is said that Ada Moss met Ben.", "It is said that Ada Moss met Ben."),
        ("By default `fetchd` listens.", "By default fetchd listens."),
        ("``fetchd`` listens.", "``fetchd`` listens."),
    ],
)
def test_words_that_only_join_or_stress_are_left_out(sentence: str, expected: str) -> None:
    assert plain(sentence) == expected
