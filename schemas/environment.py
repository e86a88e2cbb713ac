"""Environment variables that begin with `THALWEG_`: which of them are settings, and which name a misspelt one means.

Names count in any case. What Kubernetes or Docker sets in a container for a service named `thalweg…` begins so too; it
is known by its form and left alone."""

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
from ipaddress import ip_address

from schemas.errors import WrongSetting
from schemas.setting_names import NAMES

PREFIX = "THALWEG_"
CONFIG_FILE_VARIABLE = "THALWEG_CONFIG_FILE"
DATA_DIR_VARIABLE = "THALWEG_STORAGE__DATA_DIR"
PATHS = frozenset(tuple(name.split(".")) for name in NAMES)
TABLES = frozenset(path[:length] for path in PATHS for length in range(1, len(path)))
"""Blocks of settings, nested ones included: a variable of a block holds all of it, as JSON."""


def variable_of(*path: str) -> str:
    """The variable of a setting or a block."""
    return PREFIX + "__".join(path).upper()


_OF_COMPOSE = frozenset({"THALWEG_WORKER_MEMORY", "THALWEG_QUERY_MEMORY"})  # deploy/.env, which a shell may have read
_SETTINGS = {variable_of(*path): path[-1].upper() for path in PATHS} | {CONFIG_FILE_VARIABLE: "CONFIG_FILE"}
_KNOWN = _SETTINGS.keys() | {variable_of(*path) for path in TABLES} | _OF_COMPOSE
_ADDRESS_OF_A_PORT = re.compile(r"\w*_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")
_SERVICE_LINK = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|NAME|ENV_\w+)")
_URL_OF_A_PORT = re.compile(r"(tcp|udp|sctp)://")


def read_variable(name: str) -> str | None:
    """Its value; None where it is not set, or empty."""
    exact = os.environ.get(name)
    return exact or next((value for each, value in os.environ.items() if each.upper() == name and value), None)


def refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    """Raises WrongSetting for variables that are not a setting of any process, with the nearest name. Empty ones count
    as not set."""
    sentences = [
        f"{name}: there is no such setting.{_suggestion(name.upper())}"
        for name, value in environment.items()
        if value
        and (name.upper().startswith(PREFIX) or _is_misspelt(name.upper()))
        and name.upper() not in _KNOWN
        and not _is_service_link(name, environment)
    ]
    if sentences:
        raise WrongSetting("\n".join(sorted(sentences)))


def without_settings(environment: Mapping[str, str], blocks: Collection[str] = ()) -> dict[str, str]:
    """The environment of a child process that reads the settings of these blocks alone, or none: the others hold keys
    and passwords that are not its business."""

    def is_kept(variable: str) -> bool:
        name = variable.upper()  # settings are read in any case
        if not name.startswith(PREFIX) or (blocks and name == CONFIG_FILE_VARIABLE):
            return True
        return name.removeprefix(PREFIX).lower().partition("__")[0] in blocks

    return {variable: value for variable, value in environment.items() if is_kept(variable)}


def _suggestion(variable: str) -> str:
    """A sentence with the nearest setting, after a blank; or those of that name in any block; empty for none."""
    near = difflib.get_close_matches(_bare(variable), _PLAIN, n=1)
    meant = [_PLAIN[each] for each in near] or sorted(
        name for name, setting in _SETTINGS.items() if setting == _bare(variable)
    )
    return f" Did you mean {' or '.join(map(repr, meant))}?" if meant else ""


def _is_misspelt(variable: str) -> bool:
    """Whether it is a setting with other signs between its words: `thalweg.kafka.partitions`."""
    return variable.startswith(PREFIX[:-1]) and _bare(variable) in _PLAIN


def _bare(variable: str) -> str:
    """Without what all have in common, and without the difference between one underscore and two, or another sign."""
    return re.sub("[^A-Z0-9]+", "_", variable).removeprefix(PREFIX)


_PLAIN = {_bare(name): name for name in _SETTINGS}


def _is_service_link(name: str, environment: Mapping[str, str]) -> bool:
    """Whether Kubernetes or Docker set it for a service. `THALWEG_SERVICE_PORT` may be a misspelt setting too: it is
    theirs beside what only they set."""
    return _ADDRESS_OF_A_PORT.fullmatch(name) is not None or any(
        _is_linked(service, environment) for service in _services(name)
    )


def _services(name: str) -> Iterator[str]:
    """Prefixes of which the name may be a part: `THALWEG_SERVICE_PORT` of `THALWEG` and of `THALWEG_SERVICE`."""
    for end in (match.start() for match in re.finditer("_", name)):
        if _SERVICE_LINK.fullmatch(name, end):
            yield name[:end]


def _is_linked(service: str, environment: Mapping[str, str]) -> bool:
    if _URL_OF_A_PORT.match(environment.get(f"{service}_PORT", "")):
        return True
    try:
        address = ip_address(environment.get(f"{service}_SERVICE_HOST", ""))
    except ValueError:
        return False
    of_this_machine = address.is_loopback or address.is_unspecified  # what a setting would hold; no Service has these
    return not of_this_machine and environment.get(f"{service}_SERVICE_PORT", "").isdecimal()
