"""Host names: those of this machine alone, and the one that a request is addressed to."""

import ipaddress
from urllib.parse import urlsplit

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """The name in a Host header, without port and brackets, in lower case. Raises ValueError for what is none."""
    return (urlsplit(f"//{header}").hostname or "").lower()
