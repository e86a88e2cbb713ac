"""What a field that no document has may be meant as."""

import pytest

from schemas.unknown_fields import suggest_field


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("collectoin", "collection"),
        ("url", "uri"),
        ("contents", "content"),
        ("contentType", "content_type"),
        ("ID", "id"),
        ("meta", "metadata"),
        ("link", "links"),
        ("author", None),
        ("text", None),
        ("type", None),
        ("tags", None),
        ("", None),
        ("ü" * 5_000, None),
    ],
)
def test_a_near_name_is_suggested_and_none_where_none_is_near(name: str, suggestion: str | None) -> None:
    assert suggest_field(name) == suggestion
