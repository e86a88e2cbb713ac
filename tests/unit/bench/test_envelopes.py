"""Collections in forms of their own become envelopes that the worker takes."""

import json

from schemas.events import decode_envelope
from schemas.settings import LimitSettings
from tests.bench.envelopes import peps, wikispeedia

EVENTS = [
    {"op": "create", "path": "peps/pep-1.rst", "text": "PEP: 1"},
    {"op": "create", "path": "peps/pep-2.rst", "text": "PEP: 2"},
    {"op": "update", "path": "peps/pep-1.rst", "text": "PEP: 1, changed"},
    {"op": "delete", "path": "peps/pep-2.rst"},
]


def test_a_stream_of_changes_ends_in_its_newest_state() -> None:
    [newest] = peps(EVENTS)
    assert (newest["id"], newest["content"]) == ("pep-1.rst", "PEP: 1, changed")


def test_every_event_is_kept_where_the_stream_is_wanted() -> None:
    assert [each.get("deleted", False) for each in peps(EVENTS, every=True)] == [False, False, False, True]


def test_an_article_keeps_its_links_and_categories() -> None:
    article = {
        "_id": "Åland",
        "title": "Åland",
        "text": "Islands.",
        "metadata": {"links": ["Sea"], "categories": ["A.B"]},
    }
    [made] = wikispeedia([article])
    envelope, unknown = decode_envelope(json.dumps(made).encode(), LimitSettings())
    assert (envelope.links, envelope.metadata, unknown) == (["Sea"], {"category": ["A / B"]}, ())
