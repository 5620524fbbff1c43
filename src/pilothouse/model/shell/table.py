"""Programs that run another program named in their arguments, and how their own options are told from it.

Only data. `values` are options that take the next word, `flags` those that stand alone; with `flags=ANY` an unknown
option is taken to stand alone, with `flags=VALUED` to take a word, otherwise it makes the script untrusted, because the
place where the inner command begins is then a guess.
"""

from __future__ import annotations

from typing import NamedTuple

ANY = frozenset({"*"})
VALUED = frozenset({"="})


class Prefix(NamedTuple):
    """How the command line of a wrapper leads to the command it runs."""

    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    # with one of these the wrapper runs nothing
    stops: frozenset[str] = frozenset()
    # options whose value is shell text
    scripts: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False
    # the words are joined and given to a shell
    joined: bool = False
    # the wrapper does something of its own and is listed as a command as well
    kept: bool = False
    # the command only begins behind `--`
    dashes: bool = False
    # arguments are added that are not known
    adds: bool = False
    unknown: str = ""


def names(text: str) -> frozenset[str]:
    """The blank-separated names in a text."""
    return frozenset(text.split())


def prefix(
    values: str = "", flags: str = "", stops: str = "", scripts: str = "", *, operands: int = 0, **more: bool
) -> Prefix:
    """A table row from blank-separated option names; `*` and `=` in `flags` stand for ANY and VALUED."""
    known = names(flags)
    unknown = "flag" if "*" in known else "value" if "=" in known else "error"
    return Prefix(names(values), known, names(stops), names(scripts), operands, unknown=unknown, **more)


SUDO = prefix(
    "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T --command-timeout -U"
    " --other-user -D --chdir -R --chroot",
    "-A --askpass -b --background -B --bell -E --preserve-env -H --set-home -i --login -n --non-interactive -P"
    " --preserve-groups -s --shell -S --stdin -N --no-update -k --reset-timestamp",
    "-l --list -v --validate -V --version -K --remove-timestamp -e --edit --help",
    assignments=True,
)
XARGS = prefix(
    "-I -n --max-args -P --max-procs -L -s --max-chars -d --delimiter -E -a --arg-file -J -R -S --process-slot-var",
    "-0 --null -r --no-run-if-empty -t --verbose -p --interactive -x --exit -o --open-tty -i -l -e --max-lines"
    " --replace --eof --show-limits",
    "--help --version",
    adds=True,
)
STRACE = prefix("-e -o -p -s -E -u -a -b -I -O -P -S -X -U --trace --output --attach --user --env", "*", kept=True)
UV_RUN = prefix(
    "--with --with-requirements --with-editable --extra --group --no-group --only-group --python -p --project"
    " --directory --env-file --package --index --index-url --extra-index-url --find-links --config-file --cache-dir"
    " --index-strategy --refresh-package --upgrade-package -P --color --no-extra -C --link-mode --resolution",
    "*",
    "-m --module -s --script",
)

PREFIXES: dict[str, Prefix] = {
    "sudo": SUDO,
    "doas": prefix("-u -a -C", "-n -s -L", assignments=True),
    "pkexec": prefix("--user", "--disable-internal-agent --keep-cwd"),
    "gosu": prefix(operands=1),
    "su-exec": prefix(operands=1),
    "xargs": XARGS,
    "gxargs": XARGS,
    "timeout": prefix("-s --signal -k --kill-after", "-v --verbose --preserve-status --foreground -f -p", operands=1),
    "gtimeout": prefix("-s --signal -k --kill-after", "-v --verbose --preserve-status --foreground", operands=1),
    "nice": prefix("-n --adjustment"),
    "ionice": prefix("-c --class -n --classdata", "-t --ignore", "-p --pid -P --pgid -u --uid"),
    "chrt": prefix("-T --sched-runtime -P --sched-period -D --sched-deadline", "*", "-p --pid -m --max", operands=1),
    "taskset": prefix("", "-c --cpu-list -a --all-tasks", "-p --pid", operands=1),
    "stdbuf": prefix("-i -o -e --input --output --error"),
    "unbuffer": prefix("", "-p"),
    "setsid": prefix("", "-c --ctty -f --fork -w --wait"),
    "nohup": prefix(),
    "disown": prefix("", "*", "-a -h -r"),
    "time": prefix("-f --format -o --output", "-p --portability -v --verbose -a --append -q --quiet -l"),
    "command": prefix("", "-p", "-v -V"),
    "builtin": prefix(),
    "coproc": prefix(),
    "exec": prefix("-a", "-c -l"),
    "chroot": prefix("--userspec --groups", "--skip-chdir", operands=1),
    "unshare": prefix(
        "-S --setuid -G --setgid -R --root -w --wd --propagation --setgroups --map-user --map-group", "*"
    ),
    "nsenter": prefix("-t --target -S --setuid -G --setgid", "*"),
    "setpriv": prefix("", "*"),
    "prlimit": prefix("-p --pid -o --output", "*", "-p --pid"),
    "numactl": prefix("-i -m -N -C -p -l --interleave --membind --cpunodebind --physcpubind --preferred", "*"),
    "systemd-run": prefix(
        "-p --property -u --unit --slice -E --setenv -d --working-directory --uid --gid --description -H --host -M"
        " --machine --on-calendar --on-active --on-boot --on-unit-active --timer-property --service-type --nice",
        "*",
    ),
    "systemd-inhibit": prefix("", "*"),
    "caffeinate": prefix("-t -w", "-d -i -m -s -u"),
    "xvfb-run": prefix("-s -n -e -f -w -p --server-args --server-num --error-file --auth-file", "*"),
    "dbus-run-session": prefix("--config-file --dbus-daemon", "*"),
    "dbus-launch": prefix("", "*"),
    "fakeroot": prefix("-l -s -i -b --lib --faked", "*"),
    "proxychains": prefix("-f", "-q"),
    "proxychains4": prefix("-f", "-q"),
    "torsocks": prefix("-a -u -p -P", "*"),
    "torify": prefix(),
    "firejail": prefix("", "*"),
    "entr": prefix("", "*", adds=True),
    "strace": STRACE,
    "ltrace": STRACE,
    "perf": prefix("-e -o -F -C -p", "*", operands=1, kept=True),
    "valgrind": prefix("", "*", kept=True),
    "hyperfine": prefix("-w -r -m -M --warmup --runs --export-json --export-markdown -L", "*", joined=True, kept=True),
    "rlwrap": prefix("-f -H -s -D -C -e -b", "*"),
    "faketime": prefix("-f", "*", operands=1),
    "pipx-run": prefix(),
    "busybox": prefix("", "", "--list --install --help --list-full"),
    "toybox": prefix("", "", "--list --long --help"),
    "eatmydata": prefix(),
    "catchsegv": prefix(),
    "doppler-run": prefix(),
    "watch": prefix(
        "-n --interval -q --equexit",
        "-b --beep -c --color -C --no-color -d --differences -e --errexit -g --chgexit -p --precise -t --no-title -w"
        " --no-wrap -x --exec -r --no-rerun",
        "-h --help -v --version",
        joined=True,
    ),
    "eval": prefix(joined=True),
    "ssh": prefix(
        "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -P -Q -R -S -W -w",
        "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -tt -V -v -vv -vvv -X -x -Y -y",
        operands=1,
        joined=True,
        kept=True,
    ),
    "flock": prefix(
        "-w --wait --timeout -E --conflict-exit-code",
        "-s --shared -x -e --exclusive -u --unlock -n --nb --nonblock -o --close -F --no-fork --verbose",
        "",
        "-c --command",
        operands=1,
    ),
    "script": prefix(
        "-I --log-in -O --log-out -B --log-io -T --log-timing -m --logging-format -o --output-limit -E --echo",
        "-a --append -e --return -f --flush --force -q --quiet -t -k -p -r -F",
        "-V --version -h --help",
        "-c --command",
        operands=1,
        kept=True,
    ),
    "nix-shell": prefix("-p --packages -I --arg --argstr -A --attr", "*", "", "--run --command", kept=True),
    "npx": prefix("-p --package -w --workspace", "*", "", "-c --call", kept=True, operands=99),
}

# programs whose subcommand runs another program
_COMPOSE = prefix("-e --env -u --user -w --workdir --index -p --publish -v --volume --name --entrypoint -l --label",
                  "*", operands=1, kept=True)  # fmt: skip
_CONTAINER_FLAGS = (
    "= -d --detach -i --interactive -t --tty -it -ti -dit -id --rm --init --privileged -P --publish-all --read-only"
    " --no-healthcheck --oom-kill-disable --sig-proxy -q --quiet --no-hosts --replace -T --help"
)
_RUN = prefix("", _CONTAINER_FLAGS, operands=1, kept=True)
_BEHIND_DASHES = prefix("", "*", kept=True, dashes=True)
_PLAIN = prefix("", "*")
SUBCOMMANDS: dict[tuple[str, ...], Prefix] = {
    **{(engine, verb): _RUN for engine in ("docker", "podman", "nerdctl") for verb in ("run", "exec", "create")},
    **{(engine, "container", verb): _RUN for engine in ("docker", "podman") for verb in ("run", "exec", "create")},
    **{(engine, "compose", verb): _COMPOSE for engine in ("docker", "podman") for verb in ("run", "exec")},
    ("docker-compose", "run"): _COMPOSE,
    ("docker-compose", "exec"): _COMPOSE,
    ("kubectl", "exec"): _BEHIND_DASHES,
    ("kubectl", "run"): _BEHIND_DASHES,
    ("kubectl", "debug"): _BEHIND_DASHES,
    ("oc", "exec"): _BEHIND_DASHES,
    ("uv", "run"): UV_RUN,
    ("poetry", "run"): _PLAIN,
    ("pipenv", "run"): _PLAIN,
    ("pdm", "run"): _PLAIN,
    ("rye", "run"): _PLAIN,
    ("hatch", "run"): _PLAIN,
    ("pixi", "run"): prefix("-e --environment --manifest-path", "*"),
    ("conda", "run"): prefix("-n --name -p --prefix --cwd", "*"),
    ("mamba", "run"): prefix("-n --name -p --prefix --cwd", "*"),
    ("bundle", "exec"): _PLAIN,
    ("rbenv", "exec"): _PLAIN,
    ("pyenv", "exec"): _PLAIN,
    ("asdf", "exec"): _PLAIN,
    ("direnv", "exec"): prefix("", "*", operands=1),
    ("mise", "exec"): _BEHIND_DASHES,
    ("mise", "x"): _BEHIND_DASHES,
    ("npm", "exec"): prefix("-p --package -w --workspace", "*", "", "-c --call", kept=True, operands=99),
    ("pnpm", "exec"): prefix("-C --dir --filter", "*", scripts=""),
    ("yarn", "exec"): _PLAIN,
    ("op", "run"): _BEHIND_DASHES,
    ("doppler", "run"): _BEHIND_DASHES,
    ("aws-vault", "exec"): _BEHIND_DASHES,
    ("dotenv", "run"): _PLAIN,
    ("git", "bisect", "run"): prefix(kept=True),
    ("git", "submodule", "foreach"): prefix("", "--recursive -q --quiet", joined=True, kept=True),
    ("ip", "netns", "exec"): prefix(operands=1),
    ("vagrant", "ssh"): prefix("", "*", "", "-c --command", kept=True, operands=99),
    ("nix", "develop"): prefix("", "*", "", "", kept=True, operands=99),
}
ROOTS = frozenset(key[0] for key in SUBCOMMANDS)
# options that take a word between the program and its subcommand
ROOT_VALUES = names(
    "-H --host --context -c --config -l --log-level -f --file -p --project-name -n --namespace --kubeconfig"
    " --cluster --user -C --project-directory --profile --directory --project -e --env-file --env --git-dir --work-tree"
)

SHELLS = names("sh bash zsh dash ksh ash fish rbash mksh csh tcsh yash pwsh-sh")
SHELL_VALUES = names("-o +o -O +O --rcfile --init-file")

# programs that take code of their own language, and the options that carry it
CODE_OPTIONS: dict[str, frozenset[str]] = {
    "python": names("-c"),
    "perl": names("-e -E -ne -pe -ane -lne -pie -nle"),
    "ruby": names("-e"),
    "node": names("-e --eval -p --print -pe"),
    "bun": names("-e --eval -p --print"),
    "deno": names("eval"),
    "php": names("-r"),
    "lua": names("-e"),
    "Rscript": names("-e"),
    "osascript": names("-e"),
    "elixir": names("-e"),
    "julia": names("-e -E"),
    "groovy": names("-e"),
    "tclsh": frozenset(),
    "expect": names("-c"),
    "emacs": names("--eval -eval"),
    "vim": names("-c --cmd"),
    "vi": names("-c --cmd"),
    "nvim": names("-c --cmd"),
    "gvim": names("-c --cmd"),
    "ex": names("-c"),
    "gdb": names("-ex -eval-command"),
    "sqlite3": names("-cmd"),
}
# of these, the ones that run what they read when no file is named
FED = names("python perl ruby node php lua bun Rscript julia osascript tclsh expect")
# programs whose first operand is code
CODE_OPERAND = names("awk gawk mawk nawk")
# programs that take a command in an option: `--long` (also cut short), `-x` (also in a cluster or with its value
# attached), `-word` as one word with one dash or two, `NAME=`; a subcommand of git has a row of its own
_TAR = ("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command", "--rmt-command",
        "--info-script", "--new-volume-script", "-I", "-F")  # fmt: skip
_GO = ("-exec", "-toolexec", "-vettool")
COMMAND_OPTIONS: dict[str, tuple[str, ...]] = {
    "tar": _TAR,
    "gtar": _TAR,
    "bsdtar": ("--use-compress-program",),
    "rsync": ("--rsh", "--rsync-path", "-e"),
    "scp": ("-S", "-D"),
    "sftp": ("-S", "-D"),
    "git": ("--upload-pack", "--receive-pack"),
    "git difftool": ("-x", "--extcmd"),
    "git rebase": ("-x", "--exec"),
    "git clone": ("-u",),
    "git push": ("--exec",),
    "git fetch": ("--exec",),
    "git ls-remote": ("--exec",),
    "git archive": ("--exec",),
    "git grep": ("--open-files-in-pager=",),
    "git instaweb": ("--httpd", "-d"),
    "git filter-branch": ("--tree-filter", "--index-filter", "--env-filter", "--msg-filter", "--commit-filter",
                          "--parent-filter", "--tag-name-filter"),
    "man": ("-P", "--pager", "-H", "--html"),
    "zip": ("-TT", "--unzip-command"),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "wget": ("--use-askpass",),
    "tcpdump": ("-z",),
    "rg": ("--pre", "--hostname-bin"),
    "nix": ("-c", "--command"),
    "gcc": ("-wrapper",),
    "go": _GO,
    "make": ("--eval", "SHELL=", "MAKESHELL=", "CC=", "CXX=", "LD=", "AR="),
    "gmake": ("SHELL=", "MAKESHELL="),
    "npm": ("--script-shell",),
    "pandoc": ("-F", "--filter"),
    "psql": ("-P", "--pset"),
    "mysql": ("--pager",),
    "mapfile": ("-C",),
    "readarray": ("-C",),
    "compgen": ("-C", "-F"),
    "complete": ("-C", "-F"),
}  # fmt: skip
# git configuration whose value git runs
GIT_RUNS = ("core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.askpass", "core.gitproxy",
            "diff.external", "sequence.editor", "gpg.program", "credential.helper", "uploadpack.packobjectshook",
            "interactive.difffilter")  # fmt: skip
