"""The configuration: what it may say, and that what is wrong with it is named by file, line and field."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from pilothouse.config import (
    AgentConfig,
    Config,
    ConfigError,
    add_agents,
    coder_settings,
    home_directory,
    load_config,
    read_editor_agents,
)


def write(home: Path, text: str) -> Path:
    path = home / "config.toml"
    path.write_text(text)
    return path


def test_without_a_file_everything_is_as_by_default(tmp_path: Path) -> None:
    config = load_config(tmp_path / "nowhere")
    assert (config.agents, config.policy, config.settings.default_agent) == ({}, None, None)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_is_read_into_typed_values(tmp_path: Path) -> None:
    write(
        tmp_path,
        'default_agent = "mine"\n'
        '[agents.mine]\ncommand = ["python", "agent.py"]\nenv = { KEY = "v" }\ncwd = "~/x"\ntitle = "My agent"\n'
        '[policy.autoApprove]\nreads = true\ncommands = ["npm test"]\n'
        "[server]\nport = 9000\n",
    )
    config = load_config(tmp_path)
    assert config.settings.default_agent == "mine"
    assert config.agents["mine"] == AgentConfig(
        command=("python", "agent.py"), env={"KEY": "v"}, cwd="~/x", title="My agent"
    )
    assert config.policy == {"autoApprove": {"reads": True, "commands": ["npm test"]}}
    assert config.settings.server.port == 9000


def test_the_home_is_where_the_environment_says_else_where_the_platform_does() -> None:
    assert home_directory({"PILOTHOUSE_HOME": "~/x"}) == Path.home() / "x"
    assert home_directory({"PILOTHOUSE_HOME": "rel"}) == Path.cwd() / "rel"
    default = home_directory({})
    assert default == home_directory({"PILOTHOUSE_HOME": " "})
    assert default.name == "pilothouse"


@pytest.mark.parametrize(
    ("text", "line", "field", "said"),
    [
        ("[agents.a\n", 1, None, "Expected"),
        ("x = \n", 1, None, "Invalid value"),
        ("agnets = {}\n", 1, "agnets", "did you mean `agents`?"),
        ('\n[agents.a]\ncommand = ["x"]\ncomand = 1\n', 4, "agents.a.comand", "did you mean `command`?"),
        ("[agents.a]\n\n[server]\nport = 1\n", 1, "agents.a", "no `command`"),
        ('[agents.a]\ncommand = "claude --acp"\n', 2, "agents.a.command", 'write ["claude", "--acp"]'),
        ("[agents.a]\ncommand = []\n", 2, "agents.a.command", "begins with a program"),
        ('[agents.a]\ncommand = ["x", 5]\n', 2, "agents.a.command[1]", "expected string, got int"),
        ('[agents.a]\ncommand = ["x"]\nenv = { A = 1 }\n', 3, "agents.a.env", "expected string, got int"),
        ('[agents."a b"]\ncommand = ["x"]\n', 1, "agents.a b", "a name has letters"),
        ("[server]\nport = 'x'\n", 2, "server.port", "expected int, got string"),
        ("[server]\nprt = 1\n", 2, "server.prt", "did you mean `port`?"),
        ("agents = 5\n", 1, "agents", "expected table, got int"),
        ("[policy]\ndney = []\n", 2, "policy.dney", "unknown member"),
        ("[policy.autoApprove]\n\nreads = 'yes'\n", 3, "policy.autoApprove.reads", "true, false or a list"),
        ("[policy.deny]\ncommands = ['a', '']\n", 2, "policy.deny.commands[1]", "empty string"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_field(
    tmp_path: Path, text: str, line: int, field: str | None, said: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    error = caught.value
    assert (error.line, error.field) == (line, field)
    assert said in str(error)
    assert str(error).startswith(f"{path}:{line}: ")


def test_a_file_that_cannot_be_read_is_an_error_not_a_default(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)
    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)


# -- agents from editors ------------------------------------------------------------------------------------------

ZED = """// Zed
{
  "theme": "One // Dark",  /* not a comment: "//" */
  "agent_servers": {
    "My Agent": { "type": "custom", "command": "node", "args": ["/x/agent.js", "--acp"], "env": { "K": "a\\"b\\\\" } },
    "gemini": { "command": "gemini", },
    "registry one": { "type": "registry" },
    "old": { "command": { "path": "/bin/old", "args": ["-x"] } },
    "odd": { "command": "x", "args": "no list" },
    "odder": 5,
  },
}
"""


def test_the_agents_of_zed_are_taken_over_and_the_others_named(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(ZED)
    imported = read_editor_agents(path)
    assert imported.agents == {
        "my-agent": AgentConfig(command=("node", "/x/agent.js", "--acp"), env={"K": 'a"b\\'}, title="My Agent"),
        "gemini": AgentConfig(command=("gemini",)),
        "old": AgentConfig(command=("/bin/old", "-x")),
    }
    assert imported.skipped.keys() == {"registry one", "odd", "odder"}


def test_imported_agents_are_written_behind_what_is_there_and_read_back(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write(home, '# my comment\ndefault_agent = "old"\n')
    strange = 'tab\t quote" back\\ del\x7f é \U0001f600'
    new = {"a.b": AgentConfig(command=("x", strange), env={strange: strange}, title=strange)}
    add_agents(load_config(home), new)
    again = load_config(home)
    assert again.agents == new
    assert again.path.read_text().startswith('# my comment\ndefault_agent = "old"\n')
    assert stat.S_IMODE(again.path.stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_a_name_that_is_there_already_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, '[agents.a]\ncommand = ["x"]\n')
    with pytest.raises(ConfigError):
        add_agents(load_config(tmp_path), {"a": AgentConfig(command=("y",))})
    assert path.read_text() == '[agents.a]\ncommand = ["x"]\n'


def test_a_first_import_makes_a_home_that_is_only_the_users(tmp_path: Path) -> None:
    config = Config(home=tmp_path / "new" / "home")
    add_agents(config, {"a": AgentConfig(command=("x",))})
    assert stat.S_IMODE(config.home.stat().st_mode) == 0o700
    assert load_config(config.home).agents["a"].command == ("x",)


@pytest.mark.parametrize("data", [[], {}, {"agent_servers": []}, {"agent_servers": None}, "text"])
def test_a_file_without_agents_is_refused(tmp_path: Path, data: Any) -> None:
    path = tmp_path / "acp.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ConfigError, match="agent_servers"):
        read_editor_agents(path)


def test_a_file_that_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "acp.json"
    path.write_text("{ nope")
    with pytest.raises(ConfigError, match="is no JSON"):
        read_editor_agents(path)


# -- the built-in agent -------------------------------------------------------------------------------------------


def test_the_built_in_agent_has_a_table_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, '[agent]\nmodel = "openai:gpt-5"\nmodels = ["ollama:x"]\nmode = "plan"\ncontext_window = 32000\n')
    config = load_config(tmp_path)
    found = coder_settings(config, {})
    assert (found.model, found.models, found.mode) == ("openai:gpt-5", ("ollama:x",), "plan")
    assert found.context_window == 32000
    assert coder_settings(config, {"PILOTHOUSE_MODEL": "ollama:y"}).model == "ollama:y"
    assert coder_settings(config, {"PILOTHOUSE_MODEL": " "}).model == "openai:gpt-5"
    assert coder_settings(load_config(tmp_path / "nowhere"), {}).model is None


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ('[agent]\nmodle = "x"\n', 2, "agent.modle"),
        ('[agent]\nmode = "fly"\n', 2, "agent.mode"),
        ("[agent]\nmodel = 3\n", 2, "agent.model"),
        ("[agent]\n\ncontext_window = 1\n", 3, "agent.context_window"),
    ],
)
def test_what_is_wrong_with_it_is_named(tmp_path: Path, text: str, line: int, field: str) -> None:
    write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    assert (caught.value.line, caught.value.field) == (line, field)
