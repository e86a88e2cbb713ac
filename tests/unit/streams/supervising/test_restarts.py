"""When a dead part is started again."""

from streams.supervising.restarts import BackOff


def test_the_delay_doubles_up_to_half_a_minute() -> None:
    back_off = BackOff()

    assert [back_off.after_run_of(0.5) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_minute_of_health_starts_over() -> None:
    back_off = BackOff(failures=5)

    assert back_off.after_run_of(61) == 1
    assert back_off.after_run_of(59) == 2
