"""How long a record has waited: its own time, within what was seen."""

from schemas.arrivals import Arrivals


def age(arrivals: Arrivals, offset: int, timestamp_ms: int | None, now: float = 100.0) -> float:
    """The monotonic and the wall clock show the same here."""
    return arrivals.age_seconds(offset, timestamp_ms, now=now, now_ms=int(now * 1000))


def test_a_record_from_before_the_first_look_is_as_old_as_it_says() -> None:
    arrivals = Arrivals()
    arrivals.see(10, 95.0)
    assert age(arrivals, 4, 68_000) == 32
    assert age(arrivals, 4, None) == 5
    assert age(arrivals, 4, 200_000) == 5, "it was there at the first look, whatever its producer's clock said"


def test_a_record_that_came_between_two_looks_is_as_old_as_they_allow() -> None:
    arrivals = Arrivals()
    arrivals.see(10, 80.0)
    arrivals.see(10, 90.0)
    arrivals.see(12, 91.0)
    assert age(arrivals, 10, 90_500) == 9.5
    assert age(arrivals, 11, 0) == 10
    assert age(arrivals, 11, 900_000) == age(arrivals, 11, None) == 9


def test_a_record_that_was_not_seen_yet_has_no_age() -> None:
    arrivals = Arrivals()
    assert age(arrivals, 0, 0) == 0
    arrivals.see(10, 99.0)
    assert age(arrivals, 10, 0) == 0


def test_a_topic_that_was_replaced_is_seen_as_new() -> None:
    arrivals = Arrivals()
    arrivals.see(50, 10.0)
    arrivals.see(2, 98.0)
    assert age(arrivals, 1, None) == 2
    assert age(arrivals, 1, 60_000) == 40


def test_what_was_forgotten_is_as_old_as_it_says() -> None:
    for forget in ("explicitly", "by number"):
        arrivals = Arrivals(remembered=100 if forget == "explicitly" else 2)
        for end, now in ((10, 10.0), (20, 20.0), (30, 30.0), (40, 40.0)):
            arrivals.see(end, now)
        if forget == "explicitly":
            arrivals.forget_before(25)
        assert age(arrivals, 5, 12_000) == 88
        assert age(arrivals, 35, 12_000) == 70
