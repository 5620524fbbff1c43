"""Hubs that bridges start: what is in the way of one, and is gone again, does not keep it from starting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilothouse.cli.daemon import service
from pilothouse.cli.exits import Exit
from pilothouse.config import Config, load_config, server_settings
from pilothouse.log.errors import LogLocked


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("PILOTHOUSE_HOME", str(tmp_path))
    monkeypatch.setenv("PILOTHOUSE_PORT", "0")
    return load_config()


class Starts:
    """Stands in for what serves; `locked` are the starts at which somebody else has the home."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, config: Config, locked: int, running: list[Any]) -> None:
        self.count = 0

        async def find_hub(config: Config, *, patience: float) -> Any:
            return running.pop(0) if running else None

        starts = self

        class Service:
            def __init__(self, *given: Any) -> None: ...

            async def run(self) -> None:
                starts.count += 1
                if starts.count <= locked:
                    raise LogLocked(config.database, 1)

        monkeypatch.setattr(service, "find_hub", find_hub)
        monkeypatch.setattr(service, "_Service", Service)

    async def go(self, config: Config) -> int:
        return await service._detached(config, server_settings(config), lambda: None, None)


async def test_a_home_that_another_hub_has_just_left_is_taken(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch, config, locked=2, running=[])
    assert await starts.go(config) == Exit.OK
    assert starts.count == 3


async def test_a_home_that_another_hub_serves_is_left_to_it(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = Starts(monkeypatch, config, locked=2, running=[None, object()])
    assert await starts.go(config) == Exit.OK
    assert starts.count == 1


async def test_a_home_that_is_never_free_is_not_waited_for_for_ever(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = Starts(monkeypatch, config, locked=1000, running=[])
    with pytest.raises(LogLocked):
        await starts.go(config)
    assert starts.count == service.TRIES + 1
