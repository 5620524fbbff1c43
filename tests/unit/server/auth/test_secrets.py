"""Tokens and tickets: how they are made, stored, compared and redeemed."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pilothouse.server.auth.secrets import (
    AT_ONCE,
    TRIES,
    TicketRefused,
    Tickets,
    TokenError,
    digest,
    load_token,
    new_secret,
    same,
)

# -- tokens -----------------------------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_the_first_start_makes_a_token_that_only_its_owner_can_read(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "home"
    token = load_token(home, {})
    assert token.is_new
    assert token.path == home / "token"
    assert len(token.value) >= 43
    assert (mode(home), mode(home / "token")) == (0o700, 0o600)
    assert token.notices == ()
    assert sorted(path.name for path in home.iterdir()) == ["token"]


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        load_token(tmp_path / "home", {})
    finally:
        os.umask(before)
    assert (mode(tmp_path / "home"), mode(tmp_path / "home" / "token")) == (0o700, 0o600)


def test_the_second_start_finds_the_same_token(tmp_path: Path) -> None:
    first, second = load_token(tmp_path, {}), load_token(tmp_path, {})
    assert first.value == second.value
    assert not second.is_new


def test_starts_at_the_same_time_agree_on_one_token(tmp_path: Path) -> None:
    found: list[str] = []
    barrier = threading.Barrier(8)

    def start() -> None:
        barrier.wait()
        found.append(load_token(tmp_path, {}).value)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_the_environment_goes_before_the_file_and_is_not_left_for_agents_to_inherit(tmp_path: Path) -> None:
    environ = {"PILOTHOUSE_TOKEN": "chosen-by-the-owner", "PATH": "/bin"}
    token = load_token(tmp_path, environ)
    assert token.value == "chosen-by-the-owner"
    assert token.path is None
    assert environ == {"PATH": "/bin"}
    assert not (tmp_path / "token").exists()


@pytest.mark.parametrize(
    "bad", ["short", "has spaces in it, many", "ünïcödë-ünïcödë-ünïcödë", "line\nbreak-line-break"]
)
def test_a_token_that_cannot_be_good_is_refused(tmp_path: Path, bad: str) -> None:
    with pytest.raises(TokenError, match="PILOTHOUSE_TOKEN"):
        load_token(tmp_path, {"PILOTHOUSE_TOKEN": bad})


def test_a_file_that_others_could_read_is_closed_and_the_owner_told(tmp_path: Path) -> None:
    value = load_token(tmp_path, {}).value
    (tmp_path / "token").chmod(0o644)
    token = load_token(tmp_path, {})
    assert token.value == value
    assert mode(tmp_path / "token") == 0o600
    assert "could be read by other users" in token.notices[0]


def test_a_home_that_others_could_enter_is_closed_and_the_owner_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert "0700" in load_token(tmp_path, {}).notices[0]
    assert mode(tmp_path) == 0o700


def test_a_home_is_closed_also_when_the_environment_has_the_token(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    token = load_token(tmp_path, {"PILOTHOUSE_TOKEN": "a-token-of-my-own-choice"})
    assert (token.path, mode(tmp_path)) == (None, 0o700)
    assert "was open to other users" in token.notices[0]


@pytest.mark.parametrize("wrong", [0o620, 0o602, 0o666])
def test_a_file_that_others_could_write_is_refused(tmp_path: Path, wrong: int) -> None:
    load_token(tmp_path, {})
    (tmp_path / "token").chmod(wrong)
    with pytest.raises(TokenError, match="others may have written it"):
        load_token(tmp_path, {})


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (tmp_path / "elsewhere").write_text("a-token-that-somebody-else-wrote")
    (home / "token").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TokenError, match="token"):
        load_token(home, {})


def test_a_pipe_or_directory_in_place_of_the_file_is_refused_without_waiting(tmp_path: Path) -> None:
    for name, make in (("a", os.mkfifo), ("b", os.mkdir)):
        (tmp_path / name).mkdir(mode=0o700)
        make(tmp_path / name / "token", 0o600)
        with pytest.raises(TokenError):
            load_token(tmp_path / name, {})


@pytest.mark.parametrize("text", ["", "\n", "tiny", "x" * 15])
def test_an_empty_or_short_file_is_no_token(tmp_path: Path, text: str) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "token").touch(0o600)
    (tmp_path / "token").write_text(text)
    with pytest.raises(TokenError, match="at least 16"):
        load_token(tmp_path, {})


def test_secrets_are_compared_whole() -> None:
    assert same("abc", "abc")
    assert not same("abc", "abcd")
    assert not same("abc", "")
    assert not same("é", "e")
    assert not same("\ud800", "x")
    assert len({new_secret() for _ in range(100)}) == 100
    assert digest("a") != "a"


# -- tickets ----------------------------------------------------------------------------------------------------------


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
