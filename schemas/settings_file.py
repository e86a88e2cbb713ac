"""The settings file `thalweg.toml`: where it is looked for, and what is not a setting in it."""

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.environment import (
    CONFIG_FILE_VARIABLE,
    DATA_DIR_VARIABLE,
    PATHS,
    TABLES,
    read_variable,
    variable_of,
)
from schemas.errors import NoAccess, WrongSetting

FILE_NAME = "thalweg.toml"
DEFAULT_DATA_DIR = Path("thalweg-data")


@dataclass(frozen=True)
class SettingsFile:
    """The file, None where there is none, and what is in it: {block: {setting: value}}."""

    path: Path | None
    values: Mapping[str, Any]

    def has(self, *path: str) -> bool:
        """Whether the setting is in it, such as `("service", "port")`."""
        value: Any = self.values
        for name in path:
            if not isinstance(value, Mapping) or name not in value:
                return False
            value = value[name]
        return True


def user_config_dir() -> Path:
    """Where the platform keeps settings of a user's programs: `$XDG_CONFIG_HOME/thalweg` or `~/.config/thalweg`, on
    macOS `~/Library/Application Support/thalweg`."""
    from click import get_app_dir  # which typer needs anyway

    return Path(get_app_dir("thalweg"))


def candidates(data_dir: Path | None) -> list[Path]:
    """Where the file is looked for, the first that is there counts: the working directory, in and beside the data
    directory, the user's own. `data_dir` is that of the command line."""
    directory = data_dir or Path(read_variable(DATA_DIR_VARIABLE) or DEFAULT_DATA_DIR)
    places = [Path(), directory, directory.parent, user_config_dir()]
    return list(dict.fromkeys(place / FILE_NAME for place in places))


def find_file(data_dir: Path | None) -> Path | None:
    """The file that `THALWEG_CONFIG_FILE` names, else the first of the candidates. Raises WrongSetting where the named
    one is not there."""
    if named := read_variable(CONFIG_FILE_VARIABLE):
        if not Path(named).is_file():
            raise WrongSetting(f"{CONFIG_FILE_VARIABLE} names {named!r}, which is not a file.")
        return Path(named)
    return next((each for each in candidates(data_dir) if each.is_file()), None)


def read_file(data_dir: Path | None) -> SettingsFile:
    """The file and what is in it. Raises WrongSetting for what is not TOML, and for what no process reads."""
    path = find_file(data_dir)
    if path is None:
        return SettingsFile(None, {})
    try:
        values = tomllib.loads(path.read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WrongSetting(f"The settings file is not TOML: {error} ({path}).") from error
    except PermissionError as error:
        raise NoAccess(f"No permission to read the settings file {path}.") from error
    if problems := list(_problems(values, (), path)):
        raise WrongSetting("\n".join(problems))
    return SettingsFile(path, values)


def _problems(values: Mapping[str, Any], above: tuple[str, ...], file: Path) -> Iterator[str]:
    """A sentence for each name of a table that is not a setting or a table of any process."""
    for name, value in values.items():
        path = (*above, name)
        if path in PATHS:
            continue
        if path in TABLES and isinstance(value, Mapping):
            yield from _problems(value, path, file)
        elif path in TABLES:
            yield f"{file}: {name} is a table, with its settings below a line [{'.'.join(path)}]."
        else:
            yield _unknown(path, file)


def _unknown(path: tuple[str, ...], file: Path) -> str:
    *above, name = path
    beside = {each[len(above)] for each in PATHS if each[: len(above)] == tuple(above)}
    meant = suggestion(name, sorted(beside))
    if not above:
        return f"{file}: there is no table [{name}].{meant}"
    return f"{variable_of(*path)}: there is no such setting. It is in {file}, [{'.'.join(above)}].{meant}"


def suggestion(name: str, known: Iterable[str]) -> str:
    """A sentence with the nearest known name, after a blank; empty where none is near."""
    near: Sequence[str] = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
