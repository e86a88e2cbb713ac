"""When a part that died is started again."""

from dataclasses import dataclass

FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 60.0


@dataclass
class BackOff:
    """1, 2, 4 … 30 seconds; from the start again once the part has run for a minute."""

    failures: int = 0

    def after_run_of(self, seconds: float) -> float:
        """The delay in seconds before the next start of a part that ran for `seconds`."""
        if seconds >= HEALTHY_AFTER_SECONDS:
            self.failures = 0
        delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(self.failures, 10))
        self.failures += 1
        return delay
