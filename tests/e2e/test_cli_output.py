"""Commands of an agent seen in a terminal while they run."""

from __future__ import annotations

from pathlib import Path

from tests.support.cli import Cli, Typist


def test_run_shows_what_a_command_prints_before_it_ends(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    command = "printf 'the %s line\\n' first; until [ -e go ]; do sleep 0.05; done; printf 'the %s line\\n' last"
    typist = Typist(cli, "run", "-a", "demo", "--approve-all", f"bash {command}")
    try:
        typist.sees("the first line")
        (cli.project / "go").touch()  # only now it can end
        typist.sees("the last line")
        assert typist.leaves() == 0
    finally:
        (cli.project / "go").touch()  # whatever happened, the command ends
        typist.stop()
