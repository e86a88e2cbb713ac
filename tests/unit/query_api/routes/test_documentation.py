"""`/docs`: the page about the service works without internet."""

import re

from tests.unit.query_api.running_service import Running, problem


async def test_the_page_loads_all_it_needs_from_the_service_itself(running: Running) -> None:
    page = await running.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert re.findall(r"https?://", page.text) == []
    assert '"validatorUrl": null' in page.text
    needed = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    kinds = {}
    for path in needed:
        answer = await running.get(path)
        assert answer.status_code == 200, path
        kinds[path.rpartition(".")[2]] = answer.headers["content-type"].partition(";")[0]
    assert kinds == {"css": "text/css", "js": "text/javascript", "png": "image/png"}
    assert "'/openapi.json'" in page.text


async def test_what_is_no_part_of_the_page_is_a_problem(running: Running) -> None:
    for path in ("/docs/static/none.js", "/docs/static/../core.py", "/redoc"):
        assert problem(await running.get(path))["status"] == 404
