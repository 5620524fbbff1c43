from __future__ import annotations

import pytest

from pilothouse.server.auth.secrets import AT_ONCE, TRIES, TicketRefused, Tickets


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_ticket_works_once() -> None:
    tickets = Tickets(Clock())
    ticket, secret = tickets.issue("login", "grant")
    assert tickets.redeem("login", secret) is ticket
    assert ticket.grant == "grant"
    with pytest.raises(TicketRefused):
        tickets.redeem("login", secret)


def test_a_ticket_ends_by_itself() -> None:
    clock = Clock()
    tickets = Tickets(clock)
    ticket, secret = tickets.issue("login", lifetime=300)
    clock.now += 299
    assert tickets.left(ticket) == 1
    clock.now += 1
    with pytest.raises(TicketRefused):
        tickets.redeem("login", secret)
    assert ticket.state == "expired"
    clock.now += 1000
    assert tickets.get("login", ticket.id) is None


def test_a_ticket_is_good_for_its_purpose_only() -> None:
    tickets = Tickets(Clock())
    ticket, secret = tickets.issue("pair", with_code=True)
    with pytest.raises(TicketRefused):
        tickets.redeem("login", secret, ticket.code)
    assert tickets.get("login", ticket.id) is None
    assert tickets.redeem("pair", secret, ticket.code) is ticket


def test_a_ticket_with_a_code_needs_it_and_ends_after_a_few_wrong_ones() -> None:
    tickets = Tickets(Clock())
    ticket, secret = tickets.issue("pair", with_code=True)
    assert ticket.code is not None
    assert len(ticket.code) == 6
    left = []
    for wrong in [None, "", "0" * 7, ticket.code + "0", ticket.code[::-1] + "x"][:TRIES]:
        with pytest.raises(TicketRefused) as caught:
            tickets.redeem("pair", secret, wrong)
        left.append(caught.value.left)
    assert left == [4, 3, 2, 1, 0]
    with pytest.raises(TicketRefused) as caught:
        tickets.redeem("pair", secret, ticket.code)
    assert caught.value.left is None
    assert ticket.state == "locked"


def test_a_wrong_ticket_costs_no_other_a_try() -> None:
    tickets = Tickets(Clock())
    ticket, _ = tickets.issue("pair", with_code=True)
    for _ in range(20):
        with pytest.raises(TicketRefused):
            tickets.redeem("pair", "no-such-ticket", ticket.code)
    assert ticket.tries == TRIES


def test_a_withdrawn_ticket_is_worth_nothing_and_a_used_one_stays_used() -> None:
    tickets = Tickets(Clock())
    ticket, secret = tickets.issue("pair", with_code=True)
    tickets.withdraw(ticket)
    with pytest.raises(TicketRefused):
        tickets.redeem("pair", secret, ticket.code)
    other, secret = tickets.issue("pair", with_code=True)
    tickets.redeem("pair", secret, other.code)
    tickets.withdraw(other)
    assert other.state == "used"


def test_only_so_many_wait_at_once_and_the_oldest_goes() -> None:
    tickets = Tickets(Clock())
    issued = [tickets.issue("login") for _ in range(AT_ONCE + 5)]
    assert len(tickets.pending("login")) == AT_ONCE
    for ticket, secret in issued[:5]:
        with pytest.raises(TicketRefused):
            tickets.redeem("login", secret)
        assert tickets.get("login", ticket.id) is None
    assert [tickets.redeem("login", secret) for _, secret in issued[5:]] == [ticket for ticket, _ in issued[5:]]


def test_the_secret_is_not_kept() -> None:
    tickets = Tickets(Clock())
    ticket, secret = tickets.issue("login")
    assert secret not in repr(ticket)
