"""Failed attempts to get in, counted by address and in all, and how long whoever fails too often has to wait.

What was chosen, and why:

- Only a wrong secret, ticket or code is a failure. A request without any is not: web pages can make those, and could
  shut out the owner by them. Nor is a cookie that is no longer known, which is what a browser has after a month.
- An address beyond this machine that failed too often is *shut*: nothing it sends is looked at until its pause is
  over. Each further failure doubles the pause, to a minute.
- On loopback every program, and every visitor that comes through a proxy of this machine, has the same address. If
  it could be shut, anybody could lock the owner out. There, and when it is only the total that is too high, failures
  are answered with 429, but the right secret is let in. It has 256 random bits: guessing it is hopeless at any
  rate. Short codes do not rest on this limit; their ticket ends after a few.
- Memory is bounded: of many addresses, the one that has been quiet longest is forgotten. A network of 2^64 IPv6
  addresses, which is what one visitor has, counts as one.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

BURST = 10
"""Failures of one address within a window that cost nothing."""
TOTAL = 200
"""Failures of all addresses within a window after which each is told to wait."""
WINDOW = 60.0
PAUSE = 1.0
LONGEST = 60.0
REMEMBERED = 1024

UNKNOWN = "unknown"


class _Record(Struct):
    since: float
    count: int = 0
    until: float = 0.0


class Failures:
    """`clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()
        self._all = _Record(clock())
        self.count = 0

    def shut(self, address: str | None) -> int:
        """Whole seconds that this address is not looked at; 0 if it is."""
        place = network(address)
        record = self._records.get(place)
        if record is None or place == UNKNOWN or is_loopback(address):
            return 0
        return max(0, math.ceil(record.until - self._clock()))

    def add(self, address: str | None) -> int:
        """Count a failure. Whole seconds to wait; 0 while there were few."""
        now = self._clock()
        place = network(address)
        self.count += 1
        record = self._records.setdefault(place, _Record(now))
        self._records.move_to_end(place)
        if len(self._records) > REMEMBERED:
            self._records.popitem(last=False)
        waits = [_count(record, now, BURST), _count(self._all, now, TOTAL)]
        return math.ceil(max(waits))

    def is_burst(self, address: str | None) -> bool:
        """Whether the last failure of this address was the one that used up its free ones."""
        record = self._records.get(network(address))
        return record is not None and record.count == BURST + 1

    def __len__(self) -> int:
        return len(self._records)


def _count(record: _Record, now: float, free: int) -> float:
    if now >= max(record.since + WINDOW, record.until + WINDOW):
        record.since, record.count, record.until = now, 0, 0.0
    record.count += 1
    over = record.count - free
    if over <= 0:
        return 0.0
    record.until = now + min(LONGEST, PAUSE * 2.0 ** min(over - 1, 16))
    return record.until - now


def network(address: str | None) -> str:
    """What is counted as one visitor."""
    parsed = _parse(address)
    if parsed is None:
        return UNKNOWN
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def is_loopback(address: str | None) -> bool:
    parsed = _parse(address)
    return parsed is not None and parsed.is_loopback


def _parse(address: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        parsed = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return None
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed
