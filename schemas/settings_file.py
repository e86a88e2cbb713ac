"""The settings file `thalweg.toml`: where it is looked for, and what is no setting in it; child processes' settings."""

import difflib
import os
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import NoAccess, WrongSetting

FILE_NAME = "thalweg.toml"
PREFIX = "THALWEG_"
CONFIG_FILE_VARIABLE = "THALWEG_CONFIG_FILE"
DATA_DIR_VARIABLE = "THALWEG_STORAGE__DATA_DIR"
DEFAULT_DATA_DIR = Path("thalweg-data")
BLOCKS = (
    *("kafka", "storage", "limits", "embedding", "language_model", "chunking", "worker", "broker"),
    *("service", "reranker"),
)
"""Every table of the file, whichever process reads it."""


@dataclass(frozen=True)
class SettingsFile:
    """The file, None where there is none, and what is in it: {block: {setting: value}}."""

    path: Path | None
    values: Mapping[str, Any]

    def has(self, *path: str) -> bool:
        """Whether the setting stands in it, such as `("service", "budgets", "graph_seconds")`."""
        value: Any = self.values
        for name in path:
            if not isinstance(value, Mapping) or name not in value:
                return False
            value = value[name]
        return True


def without_settings(environment: Mapping[str, str], blocks: Collection[str] = ()) -> dict[str, str]:
    """The environment of a child process that reads the settings of these blocks alone, or none: the others hold keys
    and passwords that are not its business."""

    def is_kept(variable: str) -> bool:
        name = variable.upper()  # settings are read in any case
        if not name.startswith(PREFIX) or (blocks and name == CONFIG_FILE_VARIABLE):
            return True
        return name.removeprefix(PREFIX).lower().partition("__")[0] in blocks

    return {variable: value for variable, value in environment.items() if is_kept(variable)}


def user_config_dir() -> Path:
    """Where the platform keeps settings of a user's programs: `$XDG_CONFIG_HOME/thalweg` or `~/.config/thalweg`, on
    macOS `~/Library/Application Support/thalweg`."""
    from click import get_app_dir  # which typer needs anyway

    return Path(get_app_dir("thalweg"))


def candidates(data_dir: Path | None) -> list[Path]:
    """Where the file is looked for, the first that is there counts: the working directory, in and beside the data
    directory, the user's own. `data_dir` is that of the command line."""
    directory = data_dir or Path(os.environ.get(DATA_DIR_VARIABLE) or DEFAULT_DATA_DIR)
    places = [Path(), directory, directory.parent, user_config_dir()]
    return list(dict.fromkeys(place / FILE_NAME for place in places))


def find_file(data_dir: Path | None) -> Path | None:
    """The file that `THALWEG_CONFIG_FILE` names, else the first of the candidates. Raises WrongSetting where the named
    one is not there."""
    if named := os.environ.get(CONFIG_FILE_VARIABLE):
        if not Path(named).is_file():
            raise WrongSetting(f"{CONFIG_FILE_VARIABLE} names {named!r}, which is not a file.")
        return Path(named)
    return next((each for each in candidates(data_dir) if each.is_file()), None)


def read_file(data_dir: Path | None) -> SettingsFile:
    """The file and what is in it. Raises WrongSetting for what is no TOML, and for a table that no process reads."""
    path = find_file(data_dir)
    if path is None:
        return SettingsFile(None, {})
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongSetting(f"The settings file is not TOML: {error} ({path}).") from error
    except PermissionError as error:
        raise NoAccess(f"No permission to read the settings file {path}.") from error
    for name, value in values.items():
        if name not in BLOCKS:
            raise WrongSetting(f"{path}: there is no table [{name}].{suggestion(name, BLOCKS)}")
        if not isinstance(value, Mapping):
            raise WrongSetting(f"{path}: {name} is a table, with its settings below a line [{name}].")
    return SettingsFile(path, values)


def suggestion(name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known name, after a blank; empty where none is near."""
    near: Sequence[str] = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
