"""A probe: one step after the other, each bounded in time and each with a row of its own, whatever the agent does.

An agent that dies or hangs in one step is started anew for the next. Whatever way a probe ends, its agents end before
it does.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from ...acp.errors import METHOD_NOT_FOUND, ConnectionClosed, RequestError, SpawnError
from ...adapters.running import AgentSilent, FetchFailed
from ...hub.agent.process import AgentSpec
from .client import FILE, NOTE, SCRIPT, Script
from .report import Mask, Outcome, Report, Row, claimed, judged
from .steps import STEPS, Step, auth
from .talk import SHOWN, Talk, Untried, short

MOST = 300
"""Characters of what a row says, and of its evidence."""


class Probe:
    """A probe of one agent in an empty directory of its own.

    `prompts`: whether its model may be asked, which may cost money. `allows`: whether it may write and run what the
    script tells it to. `timeout` is in seconds, for each step. `told` is called when a step begins, and with what
    its agent's start waits for, `done` with its row.
    """

    def __init__(
        self,
        spec: AgentSpec,
        directory: Path,
        now: Callable[[], str],
        *,
        script: Script = SCRIPT,
        prompts: bool = False,
        allows: bool = False,
        model: str | None = None,
        timeout: float = 60.0,
        told: Callable[[str], None] = lambda step: None,
        done: Callable[[Row], None] = lambda row: None,
    ) -> None:
        self._talk = Talk(
            spec, directory, now, script=script, prompts=prompts, allows=allows, model=model, timeout=timeout
        )
        self._mask = Mask(os.environ, spec.env)
        self._talk.told = lambda what: told(f"{self._step}: {what}")
        self._step = ""
        self._told = told
        self._done = done

    async def run(self) -> Report:
        """All steps. Whoever cancels this still waits until no process is left."""
        rows: list[Row] = []
        talk = self._talk
        try:
            for step, costs, work in STEPS:
                row = await self._row(step, costs, work)
                rows.append(row)
                self._done(row)
                if step == "initialize" and row.state == "no":
                    break
        finally:
            await talk.close()
        for place, row in enumerate(rows):
            rows[place] = revised = await self._revised(row)
            if revised.state != row.state:
                self._done(revised)
        rows += [Row(step=step, state="untried", text="it does not start") for step, _, _ in STEPS[len(rows) :]]
        card = talk.client.card
        if card is None:
            return Report(agent=talk.spec.name, version="", rows=rows)
        version, card = short(self._mask(card.agent.version)), judged(card, rows)
        return Report(
            agent=talk.spec.name, version=version, rows=rows, card=card, said=claimed(talk.stated, card, rows)
        )

    async def _revised(self, row: Row) -> Row:
        """What a step found out, in the light of what came later: a login that was wanted only for a prompt, a file
        that was written when nobody looked."""
        talk = self._talk
        if row.step == "auth" and row.state == "yes":
            return self._made(row.step, await auth(talk), row.sent, row.ms)
        if row.step == "permission" and row.state != "no":
            if talk.has_meddled:
                return replace(row, state="no", text=f"{row.text}; but it changed {NOTE}, which nobody told it to")
            if talk.has_written and not talk.allows:
                return replace(row, state="no", text=f"{row.text}; but later it wrote {FILE} all the same")
        return row

    async def _row(self, step: str, costs: bool, work: Step) -> Row:
        talk = self._talk
        if costs and not talk.prompts:
            return Row(step=step, state="untried", text="it would ask the model, which may cost money")
        self._step = step
        self._told(step)
        talk.client.listen()
        talk.sent = ""
        began = time.monotonic()
        outcome = await self._tried(work)
        took = round((time.monotonic() - began) * 1000)
        ms = took if talk.sent and outcome.state != "untried" else None
        return self._made(step, outcome, talk.sent, ms)

    def _made(self, step: str, outcome: Outcome, sent: str, ms: int | None) -> Row:
        text, sent, seen = (short(self._mask(one), MOST) for one in (outcome.text, sent, outcome.seen))
        return Row(step=step, state=outcome.state, text=text, sent=sent, seen=seen, ms=ms)

    def _last(self, words: str) -> str:
        """The end of what an agent said on stderr; masked before it is cut, as half a secret is not known for one."""
        return " ".join(self._mask(words).split())[-SHOWN:]

    async def _tried(self, work: Step) -> Outcome:
        talk = self._talk
        try:
            async with asyncio.timeout(talk.timeout) as talk.limit:
                return await work(talk)
        except Untried as exc:
            return Outcome("untried", str(exc))
        except RequestError as exc:
            known = "not known to it" if exc.code == METHOD_NOT_FOUND else f"refused: {exc.message}"
            details = json.dumps(exc.data) if exc.data is not None else ""
            return Outcome("no", known, f"error {exc.code} {details}")
        except ConnectionClosed as exc:
            await talk.drop()
            code = f"exit code {exc.exit_code}" if exc.exit_code is not None else "its output ended"
            fetched = f"; {exc.reason}" if isinstance(exc, FetchFailed) else ""
            return Outcome("no", f"the agent ended ({code}){fetched}", self._last(exc.stderr_tail or ""))
        except AgentSilent as exc:
            return Outcome(
                "no", short(str(exc).partition("; it said:")[0]), self._last(exc.stderr_tail) or talk.client.complaint
            )
        except TimeoutError:
            await talk.drop()
            return Outcome("no", f"no answer within {talk.timeout:g} s", talk.client.complaint or talk.client.told)
        except SpawnError as exc:
            return Outcome("no", str(exc))
        except Exception as exc:  # whatever an agent can say that nobody thought of: the card is still made
            return Outcome("no", "what it said cannot be read", f"{type(exc).__name__}: {exc}")
