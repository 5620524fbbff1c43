"""What programs do, as data: which only read, which change files, and which are risky by their very name.

A program that is in none of these tables counts as project code (`runs-program`, medium). Adding one to `READERS` says
that no option of it writes, runs or connects beyond what its rule in `judge` looks at.
"""

from __future__ import annotations

import re
from typing import Final

from ..patterns import fully_matching, searching


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
