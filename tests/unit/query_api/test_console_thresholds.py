"""The console offers to leave out what the service calls unlikely."""

from pathlib import Path

import query_api
from schemas.hits import LIKELY_FROM, UNLIKELY_BELOW

SEARCH = Path(query_api.__file__).parent / "console" / "src" / "views" / "search"


def test_options_leave_out_what_the_service_calls_unlikely() -> None:
    options = (SEARCH / "Options.svelte").read_text(encoding="utf-8")
    assert f'<option value="{UNLIKELY_BELOW}">unlikely hits</option>' in options
    assert f'<option value="{LIKELY_FROM}">all but likely hits</option>' in options
    assert f"![{UNLIKELY_BELOW}, {LIKELY_FROM}]" in options
    assert f"Likely from {LIKELY_FROM:.0%}, unlikely below {UNLIKELY_BELOW:.0%}".replace("%", " %") in options


def test_a_hit_is_red_by_the_services_word_alone() -> None:
    for name in ("HitCard.svelte", "../Search.svelte"):
        page = (SEARCH / name).read_text(encoding="utf-8")
        assert "hit.unlikely" in page
        assert "confidence <" not in page
