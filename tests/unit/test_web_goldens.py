"""The page's types and goldens are what the code says; Vitest holds the page's fold to them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from pilothouse.model import EVENT_TYPES
from pilothouse.model.session import STATUSES, Session
from tests.support import web_goldens

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_web_types", ROOT / "tools" / "generate_web_types.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_types_are_current(generator: ModuleType) -> None:
    assert generator.main(["--check"]) == 0


def test_a_stale_file_is_named(
    generator: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    monkeypatch.setattr(generator, "MODEL", tmp_path)
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    (tmp_path / "tables.gen.ts").write_text("")
    assert generator.main(["--check"]) == 1
    assert "tables.gen.ts is stale" in capsys.readouterr().err


def test_the_types_know_every_event_and_every_field_of_a_session(generator: ModuleType) -> None:
    text = generator.types()
    assert all(f'type: "{kind}";' in text for kind in EVENT_TYPES)
    state = text.partition("export interface SessionState {")[2].partition("}")[0]
    assert [line.split(":")[0].strip() for line in state.strip().splitlines()] == list(Session.__struct_encode_fields__)
    assert all(f'"{status}"' in generator.tables() for status in STATUSES)


def test_the_goldens_are_what_their_events_give() -> None:
    assert web_goldens.stale() == []


def test_the_goldens_have_every_kind_of_event() -> None:
    cases = [case for path in web_goldens.GOLDENS.glob("*.json") for case in web_goldens.cases_in(path)]
    assert {event["type"] for case in cases for event in case} == set(EVENT_TYPES)
    assert {path.stem for path in web_goldens.GOLDENS.glob("*.json")} == {
        *web_goldens.PLAYS,
        "elsewhere",
        "odd",
        "tool_names",
    }
