"""What each agent did in each case: `ok`, what was different though no fault, or what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 90


class Table:
    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], str] = {}
        self._notes: dict[tuple[str, str], list[str]] = {}
        self.refused: list[str] = []

    def note(self, agent: str, case: str, text: str) -> None:
        self._notes.setdefault((agent, case), []).append(text)

    def done(self, agent: str, case: str, error: str) -> None:
        if error or (agent, case) not in self._rows:
            self._rows[agent, case] = error

    def lines(self) -> Iterator[str]:
        if not self._rows:
            return
        yield ""
        agents = max(len(agent) for agent, _ in self._rows)
        cases = max(len(case) for _, case in self._rows)
        for (agent, case), error in self._rows.items():
            differed = "; ".join(self._notes.get((agent, case), ()))
            told = f"FAILED {error[:WIDTH]}" if error else "ok"
            yield f"{agent:{agents}}  {case.replace('_', ' '):{cases}}  {told}{f' ({differed})' if differed else ''}"
        failed = sum(bool(error) for error in self._rows.values())
        yield f"{len(self._rows)} cases, {len(self._rows) - failed} ok, {failed} failed"
        for wanted in self.refused:
            yield f"refused: {wanted}"
