"""TCP ports of this machine: which are free, which are taken."""

import errno
import socket

from schemas.errors import InUse, NoAccess

LOOPBACK = "127.0.0.1"


def free_port(host: str = LOOPBACK) -> int:
    """A port nobody listens on now. Not reserved: take it soon."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Whether a server could listen on the port. Raises NoAccess for a port this user may not open."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except PermissionError as error:
            raise NoAccess(f"This user may not listen on port {port}: choose one above 1023.") from error
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return not answers(port, host)


def answers(port: int, host: str = LOOPBACK, timeout_seconds: float = 0.5) -> bool:
    """Whether something accepts connections on the port."""
    try:
        with socket.create_connection((host, port), timeout=timeout_seconds):
            return True
    except OSError:
        return False


def require_free(port: int, option: str, host: str = LOOPBACK) -> None:
    """Raises InUse, naming the port and the option that chooses another one, when the port is taken."""
    if not is_free(port, host):
        raise InUse(
            f"Port {port} on {host} is in use. Stop the process that listens there, or choose another with {option}."
        )
