"""The table of docs/configuration.md and the names in schemas/setting_names.py, made from the settings' own classes:
`python -m tests.settings_table`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from query_api.settings import ServiceSettings
from streams.settings import WorkerSettings
from streams.supervisor.supervisor import UpSettings

PAGE = Path(__file__).parents[1] / "docs" / "configuration.md"
NAMES = Path(__file__).parents[1] / "schemas" / "setting_names.py"
BEGIN = "<!-- settings: written by `python -m tests.settings_table` -->\n"
END = "<!-- end of settings -->"


def rows() -> Iterator[str]:
    seen: set[str] = set()
    for settings in (WorkerSettings, ServiceSettings, UpSettings):
        for name, default, description in fields(settings, "THALWEG"):
            if name not in seen:
                seen.add(name)
                yield f"| `{name}` | {default} | {description} |"


def fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    """(environment variable, default, description) of every setting, nested blocks included."""
    for name, field in model.model_fields.items():
        path = f"{prefix}_{name.upper()}" if prefix == "THALWEG" else f"{prefix}__{name.upper()}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields(field.annotation, path)
        else:
            yield path, shown(field.default), field.description or ""


def shown(default: Any) -> str:
    if default is None or default is PydanticUndefined:
        return ""
    return f"`{', '.join(map(str, default)) if isinstance(default, tuple) else default}`"


def table() -> str:
    return "\n".join(["| variable | default | what, and how to choose it |", "| --- | --- | --- |", *rows()]) + "\n"


def names() -> str:
    """The module with the names."""
    of_all = "\n".join(
        f'    "{row.split("`")[1].removeprefix("THALWEG_").replace("__", ".").lower()}",' for row in rows()
    )
    return (
        '"""All settings, whichever process reads them; written by `python -m tests.settings_table`."""\n\n'
        f"NAMES = (\n{of_all}\n)\n"
    )


def main() -> None:
    NAMES.write_text(names())
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
