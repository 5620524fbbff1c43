"""Whether a recording of the Claude Code CLI became the right ACP, judged from the two streams alone.

Nothing of the adapter is used here: the raw stream-json lines are read anew, and what must follow from them is worked
out by rules of this file. `check(entries, told)` gives the problems found, and counts. `entries` is the recording, as
`{"dir": "a2c" | "c2a" | …, "msg": …}`; `told` is what a client was told, in order, each of one shape:
`{"update": …}`, `{"ask": {"method", "params"}}`, `{"ended": {"response": …} | {"failure": {"kind"}} , "prompts": n}`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["Report", "check"]

Json = dict[str, Any]
FINAL = ("completed", "failed")
COMMAND_OUTPUT = re.compile(r"<local-command-stdout>(.*)</local-command-stdout>", re.DOTALL)
STOPS = {
    "end_turn": {"end_turn"},
    "stop_sequence": {"end_turn"},
    "tool_use": {"end_turn"},
    "max_tokens": {"max_tokens"},
    "refusal": {"refusal"},
    None: {"end_turn"},
}
"""By the `stop_reason` of a result that is a success."""
FAULTS = {"max_output_tokens": "max_tokens"}
"""By the error of the model's service that a result tells."""
BACKGROUND = "Async agent launched"
"""So begins what the model is told of a call that goes on: not its result."""
LIMITS = {"error_max_turns": "max_turn_requests", "error_max_budget_usd": "max_turn_requests"}
"""By the subtype of a result."""


class Report:
    """What was looked at, and what was wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()

    def expect(self, holds: bool, problem: str) -> None:
        if not holds:
            self.problems.append(problem)


def check(entries: Iterable[Mapping[str, Any]], told: Iterable[Json]) -> Report:
    report, recording, heard = Report(), list(entries), list(told)
    lines = [entry["msg"] for entry in recording if entry["dir"] == "a2c" and isinstance(entry.get("msg"), dict)]
    report.counts.update(lines=len(lines), updates=sum("update" in one for one in heard))
    _check_text(report, lines, heard)
    _check_calls(report, lines, heard)
    _check_results(report, lines, heard)
    _check_turns(report, recording, heard)
    _check_questions(report, lines, heard)
    return report


def _updates(heard: list[Json], *kinds: str) -> Iterator[Json]:
    for one in heard:
        if "update" in one and one["update"]["sessionUpdate"] in kinds:
            yield one["update"]


def _blocks(lines: list[Json], speaker: str, kind: str) -> Iterator[tuple[Json, Json]]:
    """Blocks of whole messages, each with the line that it is in."""
    for line in lines:
        content = (line.get("message") or {}).get("content") if line["type"] == speaker else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == kind:
                yield line, block


# -- text --


def _check_text(report: Report, lines: list[Json], heard: list[Json]) -> None:
    """What the agent said is what its whole messages say, each word once and in order."""
    for kind, chunk in (("text", "agent_message_chunk"), ("thinking", "agent_thought_chunk")):
        said = "".join(
            update["content"].get("text", "")
            for update in _updates(heard, chunk)
            if not _claude(update).get("parentToolUseId") and not _claude(update).get("redacted")
        )
        meant = "".join(_said(lines, kind))
        report.counts[f"characters of {kind}"] += len(said)
        report.expect(said == meant, f"{kind}: {_difference(meant, said)}")


def _said(lines: list[Json], kind: str) -> Iterator[str]:
    """What was meant to be read. A result says it where nothing else did: commands of the CLI answer so."""
    has_spoken = False
    for line in lines:
        words: list[str] = []
        if line["type"] == "assistant" and not line.get("parent_tool_use_id") and not line.get("error"):
            content = line["message"]["content"]
            words = [block[kind] for block in content if block.get("type") == kind and block.get(kind)]
        elif line["type"] == "user" and kind == "text" and isinstance(line["message"].get("content"), str):
            found = COMMAND_OUTPUT.fullmatch(line["message"]["content"])
            words = [found[1].strip()] if found and found[1].strip() else []
        elif line["type"] == "result":
            if kind == "text" and not has_spoken and not line.get("is_error") and line.get("result"):
                words = [line["result"]]
            yield from words
            has_spoken = False
            continue
        has_spoken = has_spoken or bool(words)
        yield from words


def _difference(meant: str, said: str) -> str:
    place = next((at for at, (a, b) in enumerate(zip(meant, said, strict=False)) if a != b), min(len(meant), len(said)))
    return f"at character {place} {meant[place : place + 40]!r} was meant and {said[place : place + 40]!r} said"


# -- calls --


def _check_calls(report: Report, lines: list[Json], heard: list[Json]) -> None:
    """Every tool_use is one call that is announced before anything else is said of it, and ends once."""
    used = {block["id"]: line for line, block in _blocks(lines, "assistant", "tool_use")}
    announced = Counter(update["toolCallId"] for update in _updates(heard, "tool_call"))
    report.counts["calls"] += len(used)
    report.expect(set(announced) == set(used), f"calls {set(announced) ^ set(used)} are only on one side")
    for call_id, line in used.items():
        updates = [one for one in _updates(heard, "tool_call", "tool_call_update") if one["toolCallId"] == call_id]
        ends = [one["status"] for one in updates if one.get("status") in FINAL]
        report.expect(announced[call_id] == 1, f"{call_id} is announced {announced[call_id]} times")
        report.expect(len(ends) == 1, f"{call_id} ends {len(ends)} times")
        if updates:
            report.expect(updates[0]["sessionUpdate"] == "tool_call", f"{call_id} is told of before it is announced")
            parent = _claude(updates[0]).get("parentToolUseId")
            report.expect(parent == line.get("parent_tool_use_id"), f"{call_id} is said to be part of {parent}")


def _check_results(report: Report, lines: list[Json], heard: list[Json]) -> None:
    """Every tool_result, also of calls that ran at once, is told: failed if it is an error, and with its words."""
    ends = {one["toolCallId"]: one for one in _updates(heard, "tool_call_update", "tool_call") if _ended(one)}
    shown: dict[str, str] = {}
    for update in _updates(heard, "tool_call", "tool_call_update"):
        shown[update["toolCallId"]] = shown.get(update["toolCallId"], "") + _flat(update)
    message_of = {block["id"]: line["message"].get("id") for line, block in _blocks(lines, "assistant", "tool_use")}
    together = Counter(message_of.values())
    for _, block in _blocks(lines, "user", "tool_result"):
        call_id, end = block["tool_use_id"], ends.get(block["tool_use_id"])
        report.counts["results"] += 1
        report.counts["results of parallel calls"] += together[message_of.get(call_id)] > 1
        if end is None:
            report.problems.append(f"the result of {call_id} is not told")
            continue
        if block.get("is_error"):  # its words are for the model: what to do now, and not to try again
            report.expect(end["status"] == "failed", f"{call_id} failed, and is told as {end['status']}")
            continue
        for word in _sample(block.get("content")):
            report.expect(word in shown[call_id], f"the result of {call_id} lacks {word!r}")


def _ended(update: Json) -> bool:
    return update.get("status") in FINAL


def _sample(content: Any) -> list[str]:
    """A word or two of a result, by which it is known that it arrived."""
    texts = [content] if isinstance(content, str) else [one.get("text", "") for one in content or () if "text" in one]
    text = re.split(r"<[a-z_-]+>", " ".join(texts))[0]  # what is marked up is for the model
    if text.startswith(BACKGROUND):
        return []
    words = re.findall(r"[A-Za-z]{4,}", text)
    return words[:1] + words[-1:]


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(map(_flat, value.values()))
    if isinstance(value, list):
        return " ".join(map(_flat, value))
    return value if isinstance(value, str) else ""


def _claude(update: Json) -> Json:
    return (update.get("_meta") or {}).get("claudeCode") or {}


# -- turns --


def _check_turns(report: Report, recording: list[Mapping[str, Any]], heard: list[Json]) -> None:
    """Every prompt is answered once, and every end is the one that its result line tells."""
    prompts = sum(1 for one in recording if one["dir"] == "c2a" and (one.get("msg") or {}).get("type") == "user")
    ends = [one for one in heard if "ended" in one]
    answered = sum(one.get("prompts", 1) for one in ends)
    report.counts.update(prompts=prompts, ends=len(ends))
    report.expect(answered == prompts, f"{prompts} prompts have {answered} answers")
    results = list(_results(recording))
    for number, (result, was_interrupted) in enumerate(results[: len(ends)]):
        ended = ends[number]["ended"]
        got = ended["response"]["stopReason"] if ended.get("response") else f"failure: {ended['failure']['kind']}"
        allowed = _allowed(result, was_interrupted)
        fits = got in allowed or (got.startswith("failure") and "failure" in allowed)
        report.expect(fits, f"turn {number + 1} ended as {got}; {result.get('subtype')} allows {sorted(allowed)}")


def _results(recording: list[Mapping[str, Any]]) -> Iterator[tuple[Json, bool]]:
    """The results that answer a prompt, and whether the user stopped what they are about."""
    open_prompts, interrupted = 0, False
    for entry in recording:
        message = entry.get("msg")
        if not isinstance(message, dict):
            continue
        if entry["dir"] == "note":
            interrupted = interrupted or message.get("signal") == "SIGINT"
        elif entry["dir"] == "c2a":
            open_prompts += message.get("type") == "user"
            interrupted = interrupted or _stops(message)
        elif entry["dir"] == "a2c" and message.get("type") == "result" and open_prompts:
            yield message, interrupted
            open_prompts, interrupted = open_prompts - 1, False


def _stops(message: Json) -> bool:
    if message.get("type") == "control_request":
        return bool(message["request"].get("subtype") == "interrupt")
    response = (message.get("response") or {}).get("response") if message.get("type") == "control_response" else None
    return isinstance(response, dict) and response.get("interrupt") is True


def _allowed(result: Json, was_interrupted: bool) -> set[str]:
    subtype = result.get("subtype")
    if was_interrupted:
        return {"cancelled"}
    if subtype in LIMITS:
        return {LIMITS[subtype]}
    if result.get("api_error") in FAULTS:
        return {FAULTS[result["api_error"]]}
    if result.get("is_error") and result.get("stop_reason") not in ("max_tokens", "refusal"):
        return {"failure"}
    return STOPS.get(result.get("stop_reason"), {"end_turn"})


def _check_questions(report: Report, lines: list[Json], heard: list[Json]) -> None:
    """Whatever the CLI asks permission for is asked of the client once, under the id of its call."""
    wanted = [one["request"] for one in lines if one["type"] == "control_request"]
    wanted = [one for one in wanted if one.get("subtype") == "can_use_tool"]
    asked = [(one["ask"]["params"].get("toolCall") or one["ask"]["params"]) for one in heard if "ask" in one]
    report.counts["questions"] += len(wanted)
    missing = Counter(one.get("tool_use_id") for one in wanted) - Counter(one.get("toolCallId") for one in asked)
    report.expect(not missing, f"not asked: {dict(missing)}")
