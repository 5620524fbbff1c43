"""Finding files and lines: what is found, what is left out, and that no pattern holds the agent up."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path

import pytest

from pilothouse.agents.coder.tools import search
from pilothouse.agents.coder.tools.finder import glob_expression
from tests.support.coders import Client, Script, coder, results


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    for name, text in {
        "a.py": "import os\nprint('Hello')\n",
        "src/b.py": "def hello():\n    return 1\n",
        "src/deep/c.ts": "hello\n",
        "node_modules/x.py": "hello\n",
        ".git/config": "hello\n",
        "notes.md": "nothing here\n",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (directory / "data.bin").write_bytes(b"\0hello\0")
    (tmp_path / "secret.py").write_text("hello")
    (directory / "link.py").symlink_to(tmp_path / "secret.py")
    return directory


async def found(work: Path, tool: str, **given: object) -> tuple[str, Client]:
    script = Script([[(tool, given)], "Done."])
    async with coder(script, work) as client:
        await client.say("go")
        assert client.asked == []
    return results(script.heard[-1])[0], client


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", ".", ["a.py", "src/b.py"]),
        ("**/*.py", ".", ["a.py", "src/b.py"]),
        ("src/**", ".", ["src/b.py", "src/deep/c.ts"]),
        ("src/*", ".", ["src/b.py"]),
        ("*.{md,ts}", ".", ["notes.md", "src/deep/c.ts"]),
        ("[ab].py", ".", ["a.py", "src/b.py"]),
        ("?.py", "src", ["src/b.py"]),
        ("*.rs", ".", ["Nothing was found."]),
        ("../*.py", "src", ["a.py"]),
        ("../s*/**/*.ts", "src", ["src/deep/c.ts"]),
    ],
)
async def test_files_are_found_by_name(work: Path, pattern: str, path: str, expected: list[str]) -> None:
    text, client = await found(work, "glob", pattern=pattern, path=path)
    assert text.splitlines() == expected
    assert client.call("glob")["status"] == "completed"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("/*.py", "a.py"), ("/a.py", "a.py"), ("/src/**", "src/b.py\nsrc/deep/c.ts"), ("/**/b.py", "src/b.py")],
)
async def test_a_pattern_may_begin_with_the_root(work: Path, pattern: str, expected: str) -> None:
    assert (await found(work, "glob", pattern=f"{work}{pattern}"))[0] == expected
    assert (await found(work, "grep", pattern=".", glob=f"{work}/no*"))[0] == "notes.md:1: nothing here"


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "/*"])
async def test_a_pattern_that_leads_outside_says_so(work: Path, pattern: str) -> None:
    assert "outside of the workspace" in (await found(work, "glob", pattern=pattern))[0]


async def test_lines_are_found_by_pattern_with_their_places(work: Path) -> None:
    text, client = await found(work, "grep", pattern="hel+o", ignore_case=True)
    assert text.splitlines() == ["a.py:2: print('Hello')", "src/b.py:1: def hello():", "src/deep/c.ts:1: hello"]
    places = [(Path(place.path).name, place.line) for place in client.call("grep")["locations"]]
    assert places == [("a.py", 2), ("b.py", 1), ("c.ts", 1)]


async def test_a_search_can_be_in_one_file_or_in_some(work: Path) -> None:
    assert (await found(work, "grep", pattern="hello", path="src/b.py"))[0] == "src/b.py:1: def hello():"
    assert (await found(work, "grep", pattern="hello", glob="*.ts"))[0] == "src/deep/c.ts:1: hello"


async def test_a_line_is_where_it_is_read(work: Path) -> None:
    """What a page break or another odd mark ends is no line to read, to git or to an editor."""
    (work / "a.py").write_bytes("one\f\ntwo\v\u2028\x85three\r\nhere\r\n".encode())
    assert (await found(work, "grep", pattern="^here$", path="a.py"))[0] == "a.py:3: here"


async def test_a_large_file_is_searched_and_one_that_is_too_large_is_named(work: Path) -> None:
    (work / "a.log").write_bytes(b"line\n" * 1_000_000 + b"here\n")
    with (work / "b.log").open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    assert (await found(work, "grep", pattern="^here$"))[0] == "a.log:1000001: here\n[too large to be searched: b.log]"
    text, _ = await found(work, "grep", pattern="^here$", path="b.log")
    assert text == "Nothing was found. [too large to be searched: b.log]"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"pattern": "("}, "no regular expression"),
        ({"pattern": "a{99999999999}"}, "no regular expression"),
        ({"pattern": "x", "path": "gone"}, "no such file or directory"),
    ],
)
async def test_a_search_that_cannot_be_says_why(work: Path, given: dict[str, str], reason: str) -> None:
    text, client = await found(work, "grep", **given)
    assert reason in text
    assert client.call("grep")["status"] == "failed"


# -- what git ignores --


def repository(directory: Path, **files: str) -> None:
    """A repository with what is to be in it, nothing of it committed; `__` stands for a slash."""
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "-q", str(directory)], check=True)
    for name, text in files.items():
        path = directory / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    directory = tmp_path / "repo"
    files = ("kept.py", "out.log", "important.log", "build/made.py", "sub/kept.py", "sub/own.py", "sub/deep/own.py")
    repository(directory, **dict.fromkeys((name.replace("/", "__") for name in files), "needle\n"))
    (directory / ".gitignore").write_text("*.log\n!important.log\nbuild/\n")
    (directory / "sub" / ".gitignore").write_text("own.py\n")
    return directory


ALL = ["build/made.py", "important.log", "kept.py", "out.log", "sub/deep/own.py", "sub/kept.py", "sub/own.py"]
NOT_IGNORED = ["important.log", "kept.py", "sub/kept.py"]


async def names(work: Path, **given: object) -> list[str]:
    text, _ = await found(work, "glob", pattern="*.{py,log}", **given)
    lines, _ = await found(work, "grep", pattern="needle", glob="*.{py,log}", **given)
    assert sorted(line.partition(":")[0] for line in lines.splitlines()) == sorted(text.splitlines())
    return sorted(text.splitlines())


async def test_what_git_ignores_is_found_only_when_it_is_asked_for(repo: Path) -> None:
    assert await names(repo) == NOT_IGNORED
    assert await names(repo, ignored=True) == ALL
    assert await names(repo, path="sub") == ["sub/kept.py"]
    # a name that is given counts more than a rule
    assert await names(repo, path="build") == ["build/made.py"]
    assert (await found(repo, "grep", pattern="needle", path="out.log"))[0] == "out.log:1: needle"


async def test_what_is_usually_left_out_can_be_searched_but_not_the_repository_itself(work: Path) -> None:
    text, client = await found(work, "grep", pattern="hello", ignored=True)
    assert text.splitlines() == ["node_modules/x.py:1: hello", "src/b.py:1: def hello():", "src/deep/c.ts:1: hello"]
    assert client.call("grep")["title"] == "Search for “hello” (ignored files too)"


async def test_a_file_that_is_tracked_is_not_ignored(repo: Path) -> None:
    subprocess.run(["git", "-C", str(repo), "add", "-f", "out.log", "sub/deep/own.py"], check=True)
    assert await names(repo) == sorted([*NOT_IGNORED, "out.log", "sub/deep/own.py"])


async def test_a_repository_inside_of_a_directory_or_of_another_has_its_own_rules(repo: Path) -> None:
    repository(repo / "inner", **{"in.py": "needle\n", "in.log": "needle\n", "mine.py": "needle\n"})
    (repo / "inner" / ".gitignore").write_text("mine.py\n")
    assert await names(repo) == sorted([*NOT_IGNORED, "inner/in.py", "inner/in.log"])
    assert "repo/out.log" not in await names(repo.parent)


async def test_without_git_all_is_found(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert await names(repo) == ALL


async def test_a_search_starts_nothing_that_the_repository_names(repo: Path, tmp_path: Path) -> None:
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    subprocess.run(["git", "-C", str(repo), "config", "core.fsmonitor", str(hook)], check=True)
    assert await names(repo) == NOT_IGNORED
    assert not (tmp_path / "ran").exists()
    subprocess.run(["git", "-C", str(repo), "status"], check=True, capture_output=True)
    assert (tmp_path / "ran").exists(), "the trap does not work"


async def test_a_git_of_somebody_else_is_not_asked_instead(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a hook of git, which has such a variable."""
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert await names(repo) == NOT_IGNORED


async def test_a_name_that_is_no_text_is_found_too(work: Path) -> None:
    (work / os.fsdecode(b"odd\xff.py")).write_text("hello\n")
    text, client = await found(work, "glob", pattern="odd*")
    assert text == "odd?.py"
    assert client.call("glob")["status"] == "completed"


# -- what takes long --


async def test_a_pattern_that_takes_for_ever_is_given_up(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "trap.txt").write_text("a" * 40 + "!\n")
    monkeypatch.setattr(search, "SECONDS", 1.0)
    text, _ = await found(work, "grep", pattern="(a+)+$")
    assert "took longer" in text


async def test_a_search_is_cancelled(work: Path) -> None:
    (work / "trap.txt").write_text("a" * 40 + "!\n")
    async with coder(Script([[("grep", {"pattern": "(a+)+$"})]]), work) as client:
        prompt = client.start("go")
        await client.until(lambda: any(call["status"] == "in_progress" for call in client.calls.values()))
        await client.cancel()
        async with asyncio.timeout(10):
            assert (await prompt).stop_reason == "cancelled"


async def test_many_matches_are_cut(work: Path) -> None:
    (work / "many.txt").write_text("needle\n" * 2000)
    text, _ = await found(work, "grep", pattern="needle")
    assert text.splitlines()[-1] == "[only the first 500; there may be more]"


@pytest.mark.parametrize(
    ("pattern", "fits", "not_"),
    [
        ("a.b", ["a.b"], ["axb"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax"]),
        ("[!a].py", ["b.py"], ["a.py"]),
        ("a[", ["a["], ["a"]),
        ("a{", ["a{"], ["a"]),
        ("{a,b*}/c", ["a/c", "bcd/c"], ["c/c"]),
        ("./a", ["a"], ["b"]),
    ],
)
def test_globs(pattern: str, fits: list[str], not_: list[str]) -> None:
    expression = re.compile(glob_expression(pattern))
    assert all(expression.fullmatch(name) for name in fits)
    assert not any(expression.fullmatch(name) for name in not_)
