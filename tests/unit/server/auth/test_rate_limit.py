from __future__ import annotations

import pytest

from pilothouse.server.auth.rate_limit import (
    BURST,
    LONGEST,
    REMEMBERED,
    TOTAL,
    WINDOW,
    Failures,
    is_loopback,
    network,
)

STRANGER = "203.0.113.9"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_few_failures_cost_nothing_and_then_each_costs_twice_as_much() -> None:
    failures = Failures(Clock())
    waits = [failures.add(STRANGER) for _ in range(BURST + 8)]
    assert waits[:BURST] == [0] * BURST
    assert waits[BURST:] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert failures.shut(STRANGER) == LONGEST


def test_a_shut_address_is_looked_at_again_after_its_pause() -> None:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(BURST + 1):
        failures.add(STRANGER)
    assert failures.shut(STRANGER) == 1
    clock.now += 1
    assert failures.shut(STRANGER) == 0
    assert failures.add(STRANGER) == 2


def test_who_is_quiet_for_a_while_starts_anew() -> None:
    clock = Clock()
    failures = Failures(clock)
    for _ in range(BURST + 9):
        failures.add(STRANGER)
    clock.now += LONGEST + WINDOW
    assert failures.add(STRANGER) == 0


def test_one_address_does_not_shut_another() -> None:
    failures = Failures(Clock())
    for _ in range(50):
        failures.add(STRANGER)
    assert failures.shut("198.51.100.7") == 0
    assert failures.add("198.51.100.7") == 0


@pytest.mark.parametrize("local", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", None])
def test_on_this_machine_failures_are_told_to_wait_but_nobody_is_shut_out(local: str | None) -> None:
    failures = Failures(Clock())
    waits = [failures.add(local) for _ in range(BURST + 3)]
    assert waits[-1] > 0
    assert failures.shut(local) == 0


def test_many_addresses_together_are_told_to_wait_but_those_that_did_nothing_are_not_shut() -> None:
    failures = Failures(Clock())
    waits = [failures.add(f"10.0.{number // 250}.{number % 250}") for number in range(TOTAL + 1)]
    assert waits[TOTAL - 1] == 0
    assert waits[TOTAL] > 0
    assert failures.shut("198.51.100.7") == 0


def test_memory_is_bounded_whatever_comes() -> None:
    failures = Failures(Clock())
    for number in range(5 * REMEMBERED):
        failures.add(f"10.{number // 62500}.{number // 250 % 250}.{number % 250}")
    assert len(failures) == REMEMBERED


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    assert network("2001:db8::1") == network("2001:db8::ffff:1") != network("2001:db8:0:1::1")
    assert network("::ffff:203.0.113.9") == network(STRANGER)
    assert network("fe80::1%eth0") == network("fe80::2")
    assert network("not an address") == network(None)


def test_loopback_is_told_from_the_rest() -> None:
    assert [is_loopback(text) for text in ("127.0.0.1", "::1", "0.0.0.0", "::", "10.0.0.1", "", "localhost")] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
    ]
