"""How a process gets its settings, and what is said about a value that does not fit.

The command line wins over the environment (`THALWEG_…`), the environment over the TOML file, the file over the
defaults. The file is `thalweg.toml` in the working directory, or the one that `THALWEG_CONFIG_FILE` names.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from schemas.exits import WrongSetting

CONFIG_FILE_VARIABLE = "THALWEG_CONFIG_FILE"
DEFAULT_CONFIG_FILE = Path("thalweg.toml")
_MAY_HOLD_SECRETS = ("API_KEY", "BASE_URL")


class ProcessSettings(BaseSettings):
    """What a process reads once, at its start, and hands down: one subclass a process, made of blocks.

    A block of another process is left alone; within a block, what does not exist is refused.
    """

    model_config = SettingsConfigDict(
        env_prefix="THALWEG_", env_nested_delimiter="__", frozen=True, extra="ignore", env_ignore_empty=True
    )

    @classmethod
    def load(cls, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> Self:
        """The settings of this process; `overrides` (block → field → value) come from the command line.

        Raises WrongSetting with a sentence for each value that does not fit.
        """
        try:
            return cls(**(overrides or {}))  # type: ignore[arg-type]  # blocks are validated from mappings
        except ValidationError as error:
            raise WrongSetting("\n".join(_sentence(problem) for problem in error.errors())) from error
        except SettingsError as error:
            raise WrongSetting(f"A setting cannot be read: {error}.") from error
        except tomllib.TOMLDecodeError as error:
            raise WrongSetting(f"The settings file is not TOML: {error}.") from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        named = os.environ.get(CONFIG_FILE_VARIABLE)
        file = Path(named) if named else DEFAULT_CONFIG_FILE
        if named and not file.is_file():
            raise WrongSetting(f"{CONFIG_FILE_VARIABLE} names {named!r}, which is not a file.")
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, toml_file=file)


def _sentence(problem: Any) -> str:
    variable = "THALWEG_" + "__".join(str(part) for part in problem["loc"]).upper()
    if problem["type"] == "extra_forbidden":
        return f"{variable}: there is no such setting."
    message = str(problem["msg"]).removeprefix("Value error, ").replace(" items after validation", " characters")
    message = message.rstrip(".")
    if isinstance(problem["input"], (str, int, float)) and not variable.endswith(_MAY_HOLD_SECRETS):
        return f"{variable}: {message} (it is {problem['input']!r})."
    return f"{variable}: {message}."
