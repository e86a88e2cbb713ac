"""What can be wrong with something that crossed a process border."""


class MalformedEvent(ValueError):
    """A record that no retry can help: it goes to dead letters with this reason.

    `reason` is a short code for counting (it becomes a metric label); the message is for the person who mends it.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class MalformedToken(ValueError):
    """A token (`after`) that is not a comma-separated list of `<partition>:<offset>`."""


class MalformedFilter(ValueError):
    """A filter of a search that is not in the syntax, or asks what a collection's documents cannot answer."""
