"""`/docs`: the page about the service works without internet."""

import re
from pathlib import Path
from typing import Any

import pytest

from query_api.app import create_app
from query_api.settings import ServiceSettings
from schemas.settings import StorageSettings
from tests.support.fakes.service import Running, problem


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


def operations(tmp_path: Path, **service: Any) -> dict[str, dict[str, Any]]:
    settings = ServiceSettings.model_validate({"storage": StorageSettings(data_dir=tmp_path), "service": service})
    document = create_app(settings).openapi()
    return {
        f"{method.upper()} {path}": operation
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }


def test_every_error_is_declared_as_a_problem(tmp_path: Path) -> None:
    for name, operation in operations(tmp_path).items():
        assert "default" not in operation["responses"], name
        for status, response in operation["responses"].items():
            if status >= "400" and (name, status) != ("GET /readyz", "503"):
                is_openai = name.split()[1] in ("/v1/chat/completions", "/v1/responses", "/v1/models")
                kind, model = ("json", "ErrorBody") if is_openai else ("problem+json", "Problem")
                schema = {"$ref": f"#/components/schemas/{model}"}
                assert response["content"] == {f"application/{kind}": {"schema": schema}}, (name, status)


@pytest.mark.parametrize(
    ("operation", "statuses"),
    [
        ("GET /livez", "200 400 421"),
        ("GET /v1/search", "200 204 400 410 414 421 422 429 503"),
        ("POST /v1/search", "200 204 400 403 408 410 413 414 421 422 429 503"),
        ("POST /v1/chat/completions", "200 400 403 404 408 421 429 503"),
        ("GET /v1/models", "200 400 421 503"),
        ("PUT /v1/documents/{document_id}", "202 400 403 404 408 413 414 415 421 422 503"),
        ("POST /v1/evaluations", "202 400 403 404 408 409 413 421 422 501 503"),
        ("DELETE /v1/cache", "200 400 403 421 422 503"),
    ],
)
def test_the_statuses_are_those_that_occur(tmp_path: Path, operation: str, statuses: str) -> None:
    assert list(operations(tmp_path)[operation]["responses"]) == statuses.split()


def test_with_a_key_the_document_asks_for_it_where_the_service_does(tmp_path: Path) -> None:
    found = operations(tmp_path, api_key="a-key-of-sixteen-or-more")
    assert {"401", "403", "421"} & found["DELETE /v1/cache"]["responses"].keys() == {"401", "403", "421"}
    assert {"401", "403", "421"} & found["POST /v1/search"]["responses"].keys() == {"401", "421"}
    assert found["GET /livez"]["security"] == []
    assert "401" not in found["GET /livez"]["responses"]
