"""Which fields of a header relate a document to something."""

import pytest

from indexer.extraction.relating_fields import LISTED_CONFIDENCE, UNLISTED_CONFIDENCE, field_confidence

TITLE = "Getting Started with Pods"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("author", "Ada Lovelace"),
        ("author", "Fred L. Drake, Jr."),
        ("owner", "Team Petrel"),
        ("requires", "PEP 8"),
        ("part_of", "Beacon"),
        ("status", "Accepted"),
        ("severity", "high"),
        ("language", "Python 3.11"),
        ("version", "1.2.3"),
        ("min_kubernetes_version", "v1.5"),
        ("year", "1998"),
        ("created", "05-Jul-2001"),
    ],
)
def test_listed_fields_relate_by_values_of_their_form(field: str, value: str) -> None:
    assert field_confidence(field, value, TITLE) == LISTED_CONFIDENCE


@pytest.mark.parametrize(
    ("field", "value"), [("habitat", "reed beds"), ("replaced_in", "PEP 566"), ("patron", "Bell Foundation")]
)
def test_other_fields_relate_less_surely_if_their_value_is_a_name_or_a_class(field: str, value: str) -> None:
    assert field_confidence(field, value, TITLE) == UNLISTED_CONFIDENCE


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("linktitle", "Getting Started"),
        ("short", "Getting Started"),
        ("weight", "20"),
        ("layout", "post"),
        ("sidebar_position", "3"),
        ("hide_toc", "true"),
        ("published", "true"),
        ("status", "true"),
        ("status", "https://example.org"),
        ("type", "docs/guides/pods"),
        ("owner", "teams/petrel/index.md"),
        ("author", "str"),
        ("theme", "dark"),
        ("habitat", "It lives in reed beds. It eats fish."),
        ("status", "It was accepted after a long debate by all."),
        ("habitat", "a, b, c, d and many more of the kind"),
        ("stylesheet", "main.css"),
        ("created", "long ago"),
        ("habitat", "42"),
        ("habitat", ""),
    ],
)
def test_settings_of_a_page_relate_nothing(field: str, value: str) -> None:
    assert field_confidence(field, value, TITLE) == 0
