"""Where a path leads: inside the workspace, out of it, to system files, to secrets, to files that others run.

Paths are compared by their segments after `.` and `..` are resolved as text; nothing is looked up on disk. A relative
path starts in the workspace. Without a workspace an absolute path that is none of the special ones is left unjudged.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..patterns import matching
from .programs import names

_DRIVE = matching(r"(?:[\\/]{2}[?.][\\/])?([A-Za-z]):(?:[\\/]|$)")
_HOME = matching(r"(?:~[A-Za-z0-9_.-]*|\$HOME|\$\{HOME\}|\$env:USERPROFILE|%USERPROFILE%)(?=/|\\|$)")
_HERE = matching(r"(?:\$PWD|\$\{PWD\})(?=/|$)")
_TEMPORARY = matching(r"(?:\$TMPDIR|\$\{TMPDIR(?::-[\w/]*)?\}|\$TMP|\$TEMP)(?=/|$)")
_HOME_PATH = matching(r"/(?:home|Users)/[^/]+|/root")

HARMLESS_DEVICES = names(
    "/dev/null /dev/zero /dev/stdin /dev/stdout /dev/stderr /dev/tty /dev/random /dev/urandom /dev/full /dev/fd"
)
TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/var/folders", "/private/var/folders", "/dev/shm")  # noqa: S108
SYSTEM = names("etc usr bin sbin boot dev proc sys var lib lib32 lib64 libx32 run System Library Applications opt")
# the tops whose loss is the loss of a machine or a home
TOPS = SYSTEM | frozenset({"home", "Users", "root", "mnt", "media", "srv", "Volumes", "private"})
_BLOCK_DEVICE = matching(
    r"/dev/(?:sd[a-z]|hd[a-z]|vd[a-z]|xvd[a-z]|nvme\d|mmcblk\d|r?disk\d|mapper/|md\d|dm-\d|loop\d|sr\d|mem$|kmem$|port$"
    r"|mtd|ubi|zd\d|nbd\d|disk/|raw/|[shv]d\*|\*|sd\?)|\\\\\.\\physicaldrive",
    re.IGNORECASE,
)
_ACCOUNTS = matching(
    r"/etc/(?:passwd|shadow|gshadow|group|sudoers|sudoers\.d(?:/.*)?|pam\.d(?:/.*)?|pam\.conf|ld\.so\.preload"
    r"|ssh/sshd_config.*|security/.*|master\.passwd)-?$|(?:^|.*/)\.ssh/authorized_keys2?$"
)
_SECRET_SYSTEM = matching(
    r"/etc/(?:shadow|gshadow|passwd|sudoers|master\.passwd|krb5\.keytab|ssl/private|ssh|security|ipsec\.secrets|ppp"
    r"|wireguard|openvpn|kubernetes)(?:[-/.].*)?$|/proc/(?:\d+|self|\*|\$\$)/(?:environ|mem|maps|fd|root|cwd)|/proc/kcore"
    r"|/var/run/docker\.sock|/run/docker\.sock|/run/secrets|/var/run/secrets|/var/lib/(?:docker|kubelet|mysql|postgresql)"
    r"|/Library/Keychains|/dev/(?:mem|kmem)"
)
_SECRET = matching(
    r"""(?:^|.*/)(?:
        \.ssh|\.gnupg|\.aws|\.azure|\.kube|\.password-store|\.pki|\.oci|\.vault-token|\.terraform\.d/credentials.*
        |\.docker/config\.json|\.config/(?:gh|gcloud|hub|op|sops|doctl|rclone|heroku|fly|stripe|containers/auth\.json
        |google-chrome|chromium|BraveSoftware|microsoft-edge|opera|vivaldi|github-copilot|configstore|1Password|Bitwarden.*
        |keepassxc|solana|\.wrangler)
        |\.local/share/keyrings|Library/Keychains|Library/Cookies|\.mozilla|\.thunderbird
        |Library/Application\ Support/(?:Google/Chrome|Firefox|BraveSoftware|Chromium|Microsoft\ Edge|Arc|1Password)
        |AppData/(?:Local|Roaming)/(?:Google/Chrome|Mozilla|Microsoft/(?:Credentials|Protect|Vault|Edge)|BraveSoftware)
        |\.claude/\.credentials\.json|\.claude\.json|\.codex/auth\.json|\.gemini/oauth_creds\.json
        |\.local/share/opencode/auth\.json|\.bitcoin|\.ethereum|\.electrum|\.cargo/credentials(?:\.toml)?
        |\.gem/credentials|\.composer/auth\.json|\.m2/settings(?:-security)?\.xml|\.gradle/gradle\.properties
        |\.subversion/auth|\.config/pip/pip\.conf|\.databrickscfg|\.snowsql|\.boto|\.s3cfg|\.rclone\.conf
        )(?:/.*)?$""",
    re.VERBOSE,
)
_SECRET_NAME = matching(
    r"""(?:\.env(?:rc)?|\.env[.~_-].*|.+\.env|\.netrc|_netrc|\.npmrc|\.yarnrc(?:\.yml)?|\.pypirc|\.git-credentials|\.pgpass
        |\.my\.cnf|\.htpasswd|\.dockercfg|\.(?:bash|zsh|sh|python|psql|mysql|node_repl|rediscli|sqlite)_?history
        |.+\.(?:pem|key|p12|pfx|p8|jks|keystore|kdbx|ppk|asc|gpg|keychain(?:-db)?|ovpn|age)
        |id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?.*|credentials(?:\.(?:json|ya?ml|toml|ini|xml|csv))?
        |service[-_]account.*\.json|client_secrets?.*\.json|secrets?\.(?:ya?ml|json|toml|ini|txt|env|xml)|\.secrets?
        |\.vault[-_]pass.*|terraform\.tfstate.*|.+\.tfvars|kubeconfig.*|wallet\.dat|Login\ Data|logins\.json|key[34]\.db
        |cookies\.sqlite|auth\.json|token\.json|\.authinfo(?:\.gpg)?|gradle-secrets.*|sam|ntds\.dit)$""",
    re.VERBOSE | re.IGNORECASE,
)
_PUBLIC_NAME = matching(
    r"(?:\.env\.(?:example|sample|template|dist|defaults?|schema)|.+\.(?:example|sample|template)|.*\.pub|known_hosts"
    r"|example\.env|sample\.env|template\.env)$",
    re.IGNORECASE,
)
_AUTORUN = matching(
    r"""(?:^|.*/)(?:
        \.bashrc|\.bash_profile|\.bash_login|\.bash_logout|\.bash_aliases|\.profile|\.zshrc|\.zshenv|\.zprofile|\.zlogin
        |\.zlogout|\.kshrc|\.cshrc|\.tcshrc|\.login|\.inputrc|\.xinitrc|\.xprofile|\.xsession(?:rc)?|\.config/fish(?:/.*)?
        |\.config/autostart(?:/.*)?|\.config/systemd(?:/.*)?|\.config/environment\.d(?:/.*)?|\.pam_environment
        |Library/Launch(?:Agents|Daemons)(?:/.*)?|\.git/(?:hooks(?:/.*)?|config|info/attributes)|\.gitconfig
        |\.github/(?:workflows|actions)(?:/.*)?|\.gitlab-ci\.yml|\.circleci(?:/.*)?
        |\.config/git(?:/.*)?|\.husky(?:/.*)?|\.vimrc|\.vim(?:/.*)?|\.config/nvim(?:/.*)?|\.emacs(?:\.d(?:/.*)?)?|\.tmux\.conf
        |\.vscode/(?:tasks|settings|launch)\.json|\.idea/workspace\.xml|\.claude/(?:settings(?:\.local)?\.json|hooks(?:/.*)?)
        |\.codex/config\.toml|\.gemini/settings\.json|\.cursor/(?:mcp|hooks)\.json|\.mcp\.json|\.ssh/(?:config|rc|environment)
        |\.pythonrc(?:\.py)?|sitecustomize\.py|usercustomize\.py|\.lldbinit|\.gdbinit|\.config/pilothouse(?:/.*)?
        |\.direnv/.*|\.envrc|\.local/bin/.*|\.cargo/config(?:\.toml)?|\.npm/_.*|PowerShell/.*profile\.ps1
        |Start\ Menu/Programs/Startup(?:/.*)?
        )$|/etc/(?:cron.*|systemd|init\.d|rc.*|profile.*|bash.*|zsh.*|environment|xdg/autostart|ld\.so.*|udev|apt/apt\.conf.*)(?:/.*)?$
        |/var/spool/(?:cron|at)(?:/.*)?$|/(?:usr/)?lib/systemd(?:/.*)?$|/etc/crontab$""",
    re.VERBOSE,
)


class Place(NamedTuple):
    """What is known of a path from its text."""

    path: str
    inside: bool = True
    home: bool = False  # in, or itself, a home directory
    temporary: bool = False
    system: bool = False
    harmless: bool = False  # /dev/null and its like
    device: bool = False
    accounts: bool = False
    secret: bool = False
    autorun: bool = False
    # a filesystem root, a home or a top directory of the system as a whole
    top: bool = False
    root: bool = False


@lru_cache(maxsize=4096)
def locate(path: str, workspace: str | None = None, base: str = "") -> Place:
    """Judge a path; `base` is the directory that a relative one starts in, itself relative or absolute."""
    text = path.replace("\\", "/") if _DRIVE(path) or path.startswith("\\\\") or "\\" in (workspace or "") else path
    root = (workspace or "").replace("\\", "/").rstrip("/") or ("/" if workspace in {"/", "\\"} else "")
    here = _HERE(text)
    if here:
        text = "." + text[here.end() :]
    temporary = _TEMPORARY(text)
    if temporary:
        text = "/tmp" + text[temporary.end() :]  # noqa: S108
    home = _HOME(text)
    if home:
        return _in_home(path, text[home.end() :].replace("\\", "/"), root)
    absolute = text.startswith("/") or _DRIVE(text) is not None
    if not absolute and base:
        return locate(f"{base}/{text}", workspace, "")
    full, climbed = normalise(text)
    if absolute:
        return _absolute(path, full, root)
    inside = not climbed
    if climbed and root:
        full, _ = normalise(f"{root}/{text}")
        return _absolute(path, full, root)
    place = _special(path, full)
    top = climbed and all(part in {"..", "*", "."} for part in full.split("/"))
    return place._replace(inside=inside, top=top and full.count("..") > 2)


def normalise(path: str) -> tuple[str, bool]:
    """The path with `.` and `..` resolved as text, and whether it climbs above where it starts."""
    drive = _DRIVE(path)
    absolute = path.startswith("/") or drive is not None
    parts: list[str] = []
    climbed = False
    for part in path.split("/"):
        if part in {"", "."}:
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            if len(parts) > 1 or drive is None:
                parts.pop()
        elif not absolute:
            climbed = True
            parts.append("..")
    joined = "/".join(parts)
    return (joined if drive or not absolute else "/" + joined), climbed


def within(path: str, root: str) -> bool:
    """Whether a normalised path is a directory or something below it, segment by segment."""
    root = normalise(root)[0] if root else root
    if _DRIVE(root):
        path, root = path.lower(), root.lower()
    return path == root or path.startswith(root.rstrip("/") + "/")


def _absolute(path: str, full: str, root: str) -> Place:
    inside = bool(root) and within(full, root)
    if inside:
        rest = full[len(normalise(root)[0]) :].strip("/")
        return _special(path, rest)._replace(device=False, accounts=False, root=full == "/", top=full == "/")
    place = _special(path, full)
    segments = [part for part in full.split("/") if part]
    top = segments[0] if segments else ""
    drive = _DRIVE(full)
    harmless = full in HARMLESS_DEVICES or full.startswith("/dev/fd/")
    temporary = any(within(full, directory) for directory in TEMPORARY)
    if drive:
        second = segments[1].lower() if len(segments) > 1 else ""
        system = second in {"windows", "program files", "program files (x86)", "programdata"}
        whole = len(segments) < 2 or (len(segments) == 2 and (system or second in {"users", "*"}))
    else:
        base = segments[1] if top == "private" and len(segments) > 1 else top
        system = base in SYSTEM and not temporary and not harmless
        depth = len([part for part in segments if part != "*"])
        whole = depth == 0 or (depth == 1 and top in TOPS)
        whole = whole or (depth == 2 and top in {"home", "Users", "usr", "var", "private"} and not temporary)
    home = _HOME_PATH(full) is not None
    # without a workspace nobody can say that an ordinary absolute path is outside
    inside = harmless or temporary or (not root and not system and not whole)
    return place._replace(
        inside=inside, home=home, temporary=temporary, system=system, harmless=harmless,
        top=whole and not temporary, root=not segments, device=_BLOCK_DEVICE(full) is not None,
    )  # fmt: skip


def _in_home(path: str, rest: str, root: str) -> Place:
    full, climbed = normalise("./" + rest)
    whole = climbed or full in {"", ".", "*", ".*"}
    # the workspace may lie in the home directory, and then under a name nobody here knows
    owner = _HOME_PATH(root + "/")
    if owner and not climbed and full and within(f"{owner[0]}/{full}", root):
        return _special(path, f"{owner[0]}/{full}"[len(root) :].strip("/"))
    return _special(path, full)._replace(inside=False, home=True, top=whole)


def _special(path: str, full: str) -> Place:
    name = full.rpartition("/")[2]
    accounts = _ACCOUNTS(full) is not None
    secret = accounts or (
        (_SECRET_SYSTEM(full) is not None or _SECRET(full) is not None or _SECRET_NAME(name) is not None)
        and _PUBLIC_NAME(name) is None
    )
    return Place(path, accounts=accounts, secret=secret, autorun=_AUTORUN(full) is not None)
