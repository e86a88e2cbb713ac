"""When a part that died is started again."""

from dataclasses import dataclass

FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 45.0


@dataclass
class BackOff:
    """At once, and 1, 2, 4 … 30 seconds while it dies again soon; at once again when it has run for 45 seconds.

    A crash is mended by starting again, so that waits for nothing; only a loop of crashes is slowed down.
    """

    failures: int = 0

    def after_run_of(self, seconds: float) -> float:
        """The delay in seconds before the next start of a part that ran for `seconds`."""
        if seconds >= HEALTHY_AFTER_SECONDS:
            self.failures = 0
        self.failures += 1
        if self.failures == 1:
            return 0.0
        return min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(self.failures - 2, 10))
