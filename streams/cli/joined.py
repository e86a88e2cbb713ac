"""What commands here need of the query service: neither process imports the other, so `thalweg.py` hands it down."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from schemas.errors import WrongSetting

if TYPE_CHECKING:
    from schemas.settings import ProcessSettings
    from streams.loader.http_publishing import Service


@dataclass(frozen=True)
class Joined:
    """`service_client` opens a client of the service at an address, with the key that the settings name; its second
    argument is the data directory of the command line. `service_settings` imports the class of its settings."""

    service_client: "Callable[[str, Path | None], Service]"
    service_settings: "Callable[[], type[ProcessSettings]]"


def joined(context: typer.Context) -> Joined:
    """What was handed down. Raises WrongSetting where nothing was: the command runs without `thalweg`."""
    if not isinstance(context.obj, Joined):
        raise WrongSetting("This needs the command 'thalweg' itself.")
    return context.obj
