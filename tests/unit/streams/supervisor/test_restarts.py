"""When a dead part is started again."""

from streams.supervisor.restarts import BackOff


def test_the_first_start_is_at_once_and_the_delay_doubles_up_to_half_a_minute() -> None:
    back_off = BackOff()

    assert [back_off.after_run_of(0.5) for _ in range(8)] == [0, 1, 2, 4, 8, 16, 30, 30]


def test_crashes_that_are_a_minute_apart_wait_for_nothing() -> None:
    back_off = BackOff()

    assert [back_off.after_run_of(55) for _ in range(10)] == [0] * 10


def test_a_while_of_health_ends_a_loop() -> None:
    back_off = BackOff(failures=5)

    assert back_off.after_run_of(46) == 0
    assert back_off.after_run_of(44) == 1
