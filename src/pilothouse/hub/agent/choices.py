"""Choices of a session that are set again when its agent restarts: mode, model and other options.

A restart never gives an agent more freedom than it had. That depends on the mode, and on any option that is not known
to be about something else; if the agent reports another one and refuses to switch back, the session does not continue
until the user chooses. Nothing is set that the agent already reports.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from ...acp.errors import RequestError
from ...model.session import Session

MODE = "mode"
_OPPOSITE = re.compile(r"\b(?:ask|no|not|never|deny|read|plan|safe|review|confirm)\w*", re.IGNORECASE)
UNTOLD = "untold"
HARMLESS = frozenset({"model", "thought_level", "model_config", UNTOLD})
"""Categories of options that say nothing of what an agent may do, and where it does not say that they are otherwise."""
FIRST = ("model", "model_config", "thought_level")
"""Categories in the order in which they are set: a model may decide which of the others there are."""

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


class NotRestored(RequestError):
    """An agent that was started anew is in another mode than the session was, and does not go back."""

    def __init__(self, what: str, wanted: Any, found: Any, offered: list[Any], why: str) -> None:
        choice = f"; it offers: {', '.join(map(str, offered))}" if offered else ""
        super().__init__(
            -32603,
            f"the agent was started anew with {what} {found!r} and cannot be set back to {wanted!r} ({why}), "
            f"so nothing is done until somebody chooses{choice}",
            {"wanted": wanted, "found": found, "offered": offered},
        )


class Restored:
    """What `Choices.restore` did: what was set, and what could not be."""

    def __init__(self) -> None:
        self.set: dict[str, Any] = {}
        self.lost: dict[str, str] = {}

    @property
    def fact(self) -> dict[str, Any]:
        """As an event tells it; empty when there was nothing to do."""
        return {name: value for name, value in (("set", self.set), ("lost", self.lost)) if value}


class Choices:
    """The mode, the model and the options that a session has."""

    def __init__(self, state: Session) -> None:
        self.mode = state.mode
        self.model = state.model
        self.options: dict[str, Any] = {}
        self._modes: set[str] = set()
        self._free: set[str] = set()
        for option in _options(state.config_options):
            self.options[option["id"]] = option["currentValue"]
            if _is_about(option, MODE):
                self._modes.add(option["id"])
                if self.mode in _values(option):  # an agent may have told of its mode alone since then
                    self.options[option["id"]] = self.mode

    def choose_mode(self, mode_id: str) -> None:
        """Somebody chooses it now: whatever the agent makes of that is no surprise to them."""
        self.mode = mode_id
        self.options.update(dict.fromkeys(self._modes, mode_id))
        self._free |= {MODE, *self._modes}

    def choose_option(self, config_id: str, value: Any) -> None:
        """As `choose_mode`, for any option."""
        if config_id in self._modes:
            self.choose_mode(value)
        self.options[config_id] = value
        self._free.add(config_id)

    async def restore(self, call: Call, current: dict[str, Any]) -> Restored:
        """Set again what is otherwise. Raises NotRestored.

        `current` is what the agent said when it took up the session; it is kept up with what is set.
        """
        done = Restored()
        await self._restore_options(call, current, done)
        await self._restore_model(call, current, done)
        await self._restore_mode(call, current, done)
        return done

    # -- options --

    async def _restore_options(self, call: Call, current: dict[str, Any], done: Restored) -> None:
        for name, wanted in self.options.items():
            if isinstance(current.get("configOptions"), list):
                break
            # it does not say what they are; perhaps it does when one is set
            await self._set_option(call, current, done, {"id": name, "category": UNTOLD}, wanted)
        for name in self._in_order(current):
            option = _option(current, name)
            if option is not None and option["currentValue"] != self.options[name]:
                await self._set_option(call, current, done, option, self.options[name])

    def _in_order(self, current: dict[str, Any]) -> list[str]:
        categories = {option["id"]: option.get("category") for option in _options(current.get("configOptions"))}
        return sorted((name for name in self.options if name in categories), key=lambda name: _rank(categories[name]))

    async def _set_option(
        self, call: Call, current: dict[str, Any], done: Restored, option: dict[str, Any], wanted: Any
    ) -> None:
        name, offered = option["id"], _values(option)
        kind = {"type": "boolean"} if isinstance(wanted, bool) else {}
        try:
            if offered and wanted not in offered:
                raise RequestError(-32602, "it is not offered any more")
            answer = await call("session/set_config_option", {"configId": name, "value": wanted, **kind})
            _take(current, answer, name, wanted)
            now = _option(current, name)
            if now is not None and now["currentValue"] != wanted:
                raise RequestError(-32603, f"it is {now['currentValue']!r} afterwards")
        except RequestError as exc:
            if option.get("category") not in HARMLESS and name not in self._free:
                raise NotRestored(name, wanted, option["currentValue"], offered, exc.message) from exc
            done.lost[name] = exc.message
        else:
            done.set[name] = wanted

    # -- models and modes of agents that have no options for them --

    async def _restore_model(self, call: Call, current: dict[str, Any], done: Restored) -> None:
        models = current.get("models")
        if not isinstance(models, dict) or self.model in (None, models.get("currentModelId")):
            return
        if _about(current, "model") or self.model not in _ids(models.get("availableModels"), "modelId"):
            return
        try:
            await call("session/set_model", {"modelId": self.model})
        except RequestError as exc:
            done.lost["model"] = exc.message
        else:
            done.set["model"] = self.model
            current["models"] = {**models, "currentModelId": self.model}

    async def _restore_mode(self, call: Call, current: dict[str, Any], done: Restored) -> None:
        told = current.get("modes")
        modes = told if isinstance(told, dict) else {}
        found = modes.get("currentModeId")
        if self.mode is None or found == self.mode:
            return
        if self.mode in _about(current, MODE):  # the option has been set, and the two are one
            if modes:
                current["modes"] = {**modes, "currentModeId": self.mode}
            return
        offered = _ids(modes.get("availableModes"), "id")
        try:
            if offered and self.mode not in offered:
                raise RequestError(-32602, "it is not offered any more")
            await call("session/set_mode", {"modeId": self.mode})
            told_since = current.get("modes")
            if told_since is not told and isinstance(told_since, dict):
                found = told_since.get("currentModeId")
                if found != self.mode:
                    raise RequestError(-32603, "it went into another one")
        except RequestError as exc:
            if found is not None and MODE not in self._free:
                raise NotRestored(MODE, self.mode, found, offered, exc.message) from exc
            done.lost[MODE] = exc.message  # it does not say that it is in another one, or somebody is choosing
        else:
            done.set[MODE] = self.mode
            current["modes"] = {**modes, "currentModeId": self.mode}


def is_mode_option(options: Any, config_id: str) -> bool:
    """Whether this one of a session's options is the choice of its mode."""
    return any(option["id"] == config_id and _is_about(option, MODE) for option in _options(options))


def list_mode_names(modes: Any, options: Any, mode_id: Any) -> list[str]:
    """The names under which the agent offers a mode."""
    offered = [mode for mode in modes if isinstance(mode, dict) and mode.get("id") == mode_id]
    for option in _options(options):
        if _is_about(option, MODE):
            offered += [item for item in _items(option) if item.get("value") == mode_id]
    return [str(one["name"]) for one in offered if one.get("name")]


def matches_mode_id(mode_id: str, names: Iterable[str]) -> bool:
    """Whether every displayed name of a mode has all words of its id, and no word that means the opposite.

    The agent chooses the names, but the modes without approval are known by id. True if a mode has no name.
    """
    words = [word.lower() for word in re.findall(r"[A-Z]?[a-z0-9]{3,}|[A-Z]{3,}", mode_id)] or [mode_id.lower()]
    return all(all(word in name.lower() for word in words) and not _OPPOSITE.search(name) for name in names)


def mode_of(update: Any) -> str | None:
    """The mode that an update reports; None if it reports none."""
    if not isinstance(update, dict):
        return None
    reported = [update.get("currentModeId"), *_about(update, MODE)]
    return next((mode for mode in reported if isinstance(mode, str)), None)


def _rank(category: Any) -> int:
    return FIRST.index(category) if category in FIRST else len(FIRST)


def _options(value: Any) -> Iterator[dict[str, Any]]:
    for option in value if isinstance(value, list) else ():
        if isinstance(option, dict) and isinstance(option.get("id"), str) and option.get("currentValue") is not None:
            yield option


def _items(option: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The choices of an option, including those in groups."""
    offered = option.get("options")
    for item in offered if isinstance(offered, list) else ():
        if isinstance(item, dict):
            yield from _items(item) if isinstance(item.get("options"), list) else (item,)


def _values(option: dict[str, Any]) -> list[Any]:
    return [item.get("value") for item in _items(option)]


def _is_about(option: dict[str, Any], category: str) -> bool:
    return bool((option.get("category") or option["id"]) == category)


def _about(current: dict[str, Any], category: str) -> list[Any]:
    """What is chosen where there is an option for it."""
    return [option["currentValue"] for option in _options(current.get("configOptions")) if _is_about(option, category)]


def _option(current: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((option for option in _options(current.get("configOptions")) if option["id"] == name), None)


def _take(current: dict[str, Any], answer: dict[str, Any], name: str, value: Any) -> None:
    """The options as they are after one was set; an agent that does not tell them changed only that one."""
    told, known = answer.get("configOptions"), current.get("configOptions")
    if isinstance(told, list):
        current["configOptions"] = told
    elif isinstance(known, list):
        current["configOptions"] = [
            {**option, "currentValue": value} if isinstance(option, dict) and option.get("id") == name else option
            for option in known
        ]


def _ids(items: Any, key: str) -> list[str]:
    found = items if isinstance(items, list) else []
    return [item[key] for item in found if isinstance(item, dict) and isinstance(item.get(key), str)]
