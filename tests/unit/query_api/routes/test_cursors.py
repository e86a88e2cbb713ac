"""Every list refuses a cursor that it did not give out, also that of another list, in the same form."""

import pytest

from schemas.cursors import write_cursor
from tests.support.fakes.curation import curation_log
from tests.support.fakes.service import Running, problem

LISTS = [
    "/v1/entities",
    "/v1/nodes",
    "/v1/nodes?kind=entity",
    "/v1/edges",
    "/v1/reviews",
    "/v1/retrievals",
    "/v1/search?q=river",
]


@pytest.mark.parametrize("path", LISTS)
@pytest.mark.parametrize("cursor", ["é", "x", "AAAA" * 20, write_cursor({"another": "list"})])
async def test_cursor_of_no_page_is_refused(
    path: str, cursor: str, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    curation_log(running, monkeypatch)
    name, _, query = path.partition("?")
    parameters = dict(each.split("=") for each in query.split("&") if each)
    answer = await running.get(name, **parameters, cursor=cursor)
    refused = problem(answer)
    assert (refused["status"], refused["title"]) == (400, "Malformed cursor")
    assert f"{cursor[:40]!r} is not a cursor of" in refused["detail"]
    assert "omit it to begin at the first page" in refused["detail"]
