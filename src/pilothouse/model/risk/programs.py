"""Programs and places, as data: what a program does by its name, and what a path leads to.

A program that is in none of the tables counts as project code (`runs-program`, medium). Adding one to `READERS` says
that no option of it writes, runs or connects beyond what its rule in `judge` checks. Paths are compared by their
segments after `.` and `..` are resolved as text; nothing is looked up on disk. A relative path starts in the workspace.
Without a workspace an absolute path that is not a special one is left unjudged.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from ..patterns import fully_matching, matching, searching


def names(text: str) -> frozenset[str]:
    """The blank-separated names in a text."""
    return frozenset(text.split())


SILENT: Final = names(
    "echo printf true false : test [ [[ sleep wait exit return break continue shift local declare typeset readonly let"
    " set unset shopt ulimit umask getopts hash jobs bg fg disown export read mapfile readarray alias unalias trap yes"
    " seq expr date cal uptime tty tput clear reset whoami id groups users who w last uname hostname arch nproc getconf"
    " locale logname pwd dirs type which whereis whatis apropos man info help history times command builtin tput stty"
    " factor numfmt bc dc basename dirname logger caller compgen complete enable bind suspend"
)  # fmt: skip
READERS: Final = names(
    "ls dir vdir cat tac head tail less more most wc file stat du df tree grep egrep fgrep zgrep rg ag ack ugrep"
    " cut tr sort uniq comm diff colordiff cmp diff3 join paste column nl fold fmt pr rev od xxd hexdump hd"
    " strings md5sum sha1sum sha224sum sha256sum sha384sum sha512sum cksum sum shasum md5 b2sum b3sum realpath"
    " readlink jq yq xq tomlq xmllint ps pgrep pstree top htop lsof free vmstat iostat lscpu lsblk lsusb lspci"
    " lsmod shuf look bat batcat exa eza lsd fd fdfind find locate mdfind dmesg journalctl ss netstat nm objdump"
    " readelf ldd size otool zcat bzcat xzcat zless zmore cloc tokei scc awk gawk mawk nawk sed base64 base32"
    " sha3sum iconv dos2unix-check expand unexpand tsort ptx csvcut csvlook csvstat delta difft glow mdcat ncdu"
    " pdfinfo pdftotext exiftool identify mediainfo ffprobe tldr vmmap sw_vers system_profiler basenc cksum"
    " envsubst getent getfacl lsattr namei numactl pathchk shellcheck hadolint git-lfs-ls"
)  # fmt: skip
CHANGERS: Final = names(
    "mkdir touch cp mv ln install tee truncate-safe rmdir mktemp mkfifo mknod rename prename patch split csplit"
    " tar gtar bsdtar zip unzip gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 7z 7za cpio ar unrar rsync ditto"
    " dos2unix unix2dos convert magick mogrify ffmpeg pandoc sponge ed ex vim vi nvim nano emacs pico joe micro"
    " code codium subl open xdg-open trash trash-put gio xattr lndir pax uudecode uuencode wget2 script tmux"
    " screen"
)  # fmt: skip
# code, and what the sentence says the program does
NAMED: Final[dict[str, tuple[str, str]]] = {}


def _named(code: str, deed: str, programs: str) -> None:
    for program in programs.split():
        NAMED[program] = (code, deed)


_named(
    "destroys",
    "deletes or overwrites data",
    "rm unlink shred srm wipe truncate dd fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard mkswap swapoff"
    " cryptsetup lvremove vgremove pvremove lvreduce mdadm badblocks hdparm mke2fs mkfs newfs format diskutil del erase"
    " rd zpool zfs rimraf sdelete cipher fallocate debugfs tune2fs e2fsck fsck resize2fs dropdb mysqladmin",
)
_named(
    "permissions",
    "changes permissions or owners",
    "chmod chown chgrp setfacl chattr chflags setcap icacls takeown cacls restorecon chcon semanage",
)
_named(
    "privilege",
    "acts with other rights or changes users",
    "sudo doas su pkexec runuser gosu su-exec sudoedit visudo vipw vigr passwd chpasswd useradd userdel usermod adduser"
    " deluser groupadd groupdel groupmod addgroup gpasswd newgrp chsh chfn dscl sysadminctl dseditgroup runas net"
    " security secret-tool keyctl kinit capsh nsenter unshare chroot setpriv",
)
_named(
    "processes",
    "ends processes or stops the machine",
    "kill killall killall5 pkill skill xkill fuser taskkill tskill shutdown reboot halt poweroff init telinit"
    " systemctl-kill",
)
_named(
    "system",
    "changes the system",
    "mount umount losetup iptables ip6tables iptables-restore nft ufw firewall-cmd pfctl ebtables sysctl modprobe"
    " insmod rmmod depmod kexec route ifconfig ifup ifdown nmcli netplan networksetup scutil nvram csrutil spctl"
    " tmutil pmset grub-install update-grub grub-mkconfig efibootmgr update-initramfs hostnamectl timedatectl"
    " localectl loginctl setenforce setsebool aa-disable aa-complain update-alternatives dpkg-reconfigure"
    " alternatives ldconfig service rc-service rc-update chkconfig update-rc.d sc reg regedit bcdedit netsh wmic"
    " dism swapon exportfs brctl tc wg wg-quick openvpn tailscale defaults kextload nixos-rebuild bpftool perf"
    " auditctl",
)
_named(
    "schedules", "arranges for something to run later", "at batch atrm crontab schtasks anacron launchctl systemd-run"
)
_named(
    "sends-network",
    "sends data over the network",
    "scp sftp ftp lftp tftp rclone rcp croc magic-wormhole wormhole transfer mail mailx sendmail mutt msmtp swaks"
    " s3cmd s5cmd azcopy gsutil ngrok cloudflared localtunnel lt bore frpc chisel smbclient curlftpfs sshfs"
    " sshpass wormhole-william",
)
_named(
    "raw-connection",
    "opens a network connection by hand",
    "nc ncat netcat nc.openbsd nc.traditional socat telnet rlogin rsh cryptcat openssl-s_client websocat wscat"
    " nmap masscan hping3 tcpdump tshark ettercap proxychains",
)
_named(
    "remote-command",
    "runs commands on another machine",
    "ssh mosh autossh pssh pdsh dsh rexec winrs psexec ansible ansible-playbook ansible-pull salt fab cap",
)
_named(
    "infrastructure",
    "changes infrastructure",
    "pulumi cdk serverless sls eksctl kops flyctl fly heroku vercel netlify wrangler firebase eb cf nomad"
    " waypoint packer argocd flux istioctl doctl linode-cli hcloud openstack vault consul sam railway supabase",
)
_named("publishes", "publishes", "twine ghr release-it semantic-release np goreleaser")
_named(
    "reads-network",
    "reads from the network",
    "curl wget http https httpie xh aria2c axel fetch dig nslookup host whois ping ping6 traceroute tracepath mtr drill"
    " kdig lynx w3m links elinks yt-dlp youtube-dl ntpdate speedtest arp",
)
_named("reads-environment", "prints environment variables", "env printenv")
_named("installs-packages", "installs or runs packages",
       "npx pnpx bunx uvx pipx corepack nvm fnm volta asdf mise rustup sdk pyenv rbenv nodenv jenv goenv"
       " easy_install conda-install get-pip.py ensurepip cpan cpanm luarocks opam cabal stack mix-deps pod"
       " carthage vcpkg conan")  # fmt: skip

PACKAGE_MANAGERS: Final = names(
    "npm pnpm yarn bun pip pip3 pipenv poetry uv pdm rye conda mamba micromamba brew apt apt-get aptitude dnf yum"
    " pacman apk zypper snap flatpak port choco winget scoop gem bundle bundler cargo composer go nix nix-env"
    " nix-shell nix-channel guix emerge xbps-install pkg pkg_add dpkg rpm yay paru deno dotnet nuget mvn gradle"
    " gradlew sbt lein helm-plugin pixi hatch easy_install tlmgr"
)  # fmt: skip
SYSTEM_MANAGERS: Final = names(
    "brew apt apt-get aptitude dnf yum pacman apk zypper snap flatpak port choco winget scoop dpkg rpm emerge pkg"
    " yay paru"
)  # fmt: skip
INSTALLS: Final = names(
    "install i add ci update upgrade up sync in isntall dlx x exec create init get fetch tool download"
)
REMOVES: Final = names(
    "remove purge autoremove uninstall rm autoclean erase -R -Rs -Rns -e -r --remove --purge delete prune clean"
)
PUBLISHES: Final = names(
    "publish unpublish deploy yank owner login logout adduser token deprecate dist-tag push access team hook"
    " signin whoami-set"
)  # fmt: skip
# package managers that also run the project, and the verbs for it
RUNNERS: Final = names("cargo go dotnet mvn gradle gradlew sbt deno bun npm pnpm yarn")
RUNS: Final = names(
    "run test build check bench start fmt vet clippy doc generate package compile verify run-script t lint format dev"
    " serve task clean stop restart tst rebuild"
)
LISTS: Final = names(
    "list ls show info view search outdated why freeze check-updates tree metadata help version --version -v -V"
    " -h --help env config-list depends rdepends policy doctor deps licenses explain search-file whoami root bin"
    " prefix home"
)  # fmt: skip

INTERPRETERS: Final = fully_matching(
    r"(?:python|pypy|ruby|perl|node|nodejs|php|lua|luajit|bun|deno|Rscript|julia|groovy|tclsh|expect|osascript|elixir|iex"
    r"|ts-node|tsx|pwsh|powershell|cmd|wscript|cscript|java|scala|kotlin|swift|ghci|irb|pry|ipython)[\d.]*(?:\.exe)?"
)
SHELL_NAMES: Final = names("sh bash zsh dash ksh ash fish rbash mksh csh tcsh yash")
# programs whose scripts or options may hold commands of the shell
HIDING: Final = names("vim vi nvim ex gvim gdb awk gawk mawk nawk jq emacs tclsh sqlite3")
HIDING_BY_OPTION: Final = names(
    "tar gtar bsdtar rsync scp sftp git man zip sort split wget tcpdump rg gcc ssh go make gmake npm pandoc psql mysql"
    " cmake mapfile readarray compgen complete"
)
FETCHERS: Final = names(
    "curl wget wget2 http https httpie xh aria2c axel fetch lynx w3m links nc ncat netcat socat scp sftp ftp lftp"
    " tftp ssh dig nslookup host rclone gsutil openssl telnet"
)  # fmt: skip
DATABASES: Final = names(
    "psql mysql mariadb sqlite3 sqlite mongo mongosh redis-cli cqlsh clickhouse clickhouse-client sqlcmd duckdb"
    " cockroach bq snowsql influx isql sqlplus usql litecli pgcli mycli valkey-cli supabase prisma"
)  # fmt: skip
QUERY: Final = searching(
    r"\b(?:drop\s+(?:table|database|schema|index|view|user|role|column|owned|collection|keyspace|type|function|trigger)"
    r"|truncate(?:\s+table)?\s+\w|delete\s+from|alter\s+(?:table|user|role|database|system)|grant\s+\w|revoke\s+\w|update\s+\S+\s+set"
    r"|insert\s+into|replace\s+into|create\s+(?:or\s+replace\s+)?(?:user|role|function|extension)|copy\s+\S+\s+(?:to|from)"
    r"|flushall|flushdb|config\s+set|dropdatabase|deletemany|deleteone|remove\s*\(|\.drop\s*\(|migrate\s+reset|db\s+push"
    r"|load_extension|pg_read_file|lo_export|into\s+(?:out|dump)file|shutdown|reset\s+--force)|\\!|\bsystem\s+[\w./]"
    r"|(?:^|[\s;])\.(?:shell|system|import|load|output|once|read|restore|save|backup)\b",
    re.IGNORECASE,
)
CODE_DANGER: Final = searching(
    r"rmtree|unlink|os\.remove|os\.rmdir|removedirs|shutil|subprocess|os\.system|os\.exec|os\.popen|os\.spawn"
    r"|pty\.spawn|child_process|execSync|spawnSync|fs\.(?:rm|unlink|rmdir|chmod|chown)|\brm(?:dir)?(?:Sync)?\(|rimraf|FileUtils|File\.delete"
    r"|Dir\.delete|Deno\.(?:remove|run|Command)|\bsystem\b|\bexec\b|\bqx\b|popen|shell_exec|passthru|proc_open|`"
    r"|\beval\b|__import__|compile\s*\(|ctypes|socket|urlopen|urllib|requests\.|httpx|aiohttp|http\.client"
    r"|https?\.(?:get|request)|fetch\s*\(|Net::HTTP|LWP|IO::Socket|TCPSocket|open-uri|os\.kill|os\.chmod|os\.chown"
    r"|os\.setuid|do shell script|Remove-Item|Invoke-(?:Expression|WebRequest)|\biex\b|DownloadString|os\.environ"
    r"|process\.env|ENV\[|base64|b64decode|marshal|pickle|\.write_|Start-Process|Runtime\.getRuntime",
    re.IGNORECASE,
)
# both in one piece of code: a shell for someone else; code from elsewhere that is run
CODE_SOCKET: Final = searching(r"socket|IO::Socket|net\.connect|fsockopen|TCPClient", re.IGNORECASE)
CODE_SHELL: Final = searching(
    r"dup2|pty\.spawn|/bin/(?:ba|z)?sh|cmd\.exe|powershell|\bexec\b|open\(STDIN|>&", re.IGNORECASE
)
CODE_FETCH: Final = searching(
    r"urlopen|requests\.get|httpx\.get|\bfetch\(|DownloadString|Invoke-WebRequest|\biwr\b|Net::HTTP|\bcurl\b|\bwget\b",
    re.IGNORECASE,
)
CODE_RUN: Final = searching(
    r"\bexec\b|\beval\b|\bsystem\b|subprocess|\biex\b|Invoke-Expression|\|\s*(?:ba)?sh\b", re.IGNORECASE
)

# variables through which another program is made to run code, and values that do no harm there
CODE_VARIABLES: Final = names(
    "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH DYLD_FRAMEWORK_PATH BASH_ENV ENV"
    " PROMPT_COMMAND PS4 IFS SHELLOPTS BASHOPTS GIT_SSH GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EDITOR"
    " GIT_ASKPASS GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_CONFIG_GLOBAL"
    " GIT_CONFIG_SYSTEM GIT_CONFIG_COUNT GIT_CONFIG_PARAMETERS SSH_ASKPASS SUDO_ASKPASS PAGER MANPAGER EDITOR"
    " VISUAL BROWSER LESSOPEN LESSCLOSE NODE_OPTIONS PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONWARNINGS"
    " PERL5OPT PERL5LIB PERL5DB RUBYOPT RUBYLIB RUSTC_WRAPPER RUSTC CARGO_BUILD_RUSTC_WRAPPER JAVA_TOOL_OPTIONS"
    " _JAVA_OPTIONS MAKEFLAGS GNUMAKEFLAGS CC CXX TAR_OPTIONS RSYNC_RSH CVS_RSH GREP_OPTIONS RIPGREP_CONFIG_PATH"
    " npm_config_script_shell npm_config_node_options PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_INDEX_URL"
    " npm_config_registry HOME ZDOTDIR XDG_CONFIG_HOME WGETRC CURL_HOME OPENSSL_CONF TERMINFO FZF_DEFAULT_COMMAND"
    " HISTFILE BASH_FUNC DOCKER_HOST KUBECONFIG"
)  # fmt: skip
HARMLESS_VALUES: Final = names(
    "cat true false less more vim vi nano gcc g++ clang clang++ cc c++ : /bin/true /bin/cat"
) | {""}


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
