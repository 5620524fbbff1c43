"""Sharp words of programs: the table. Only data; `sharp` says what the entries mean and reads them.

A line holds one or more programs (or a program with its subcommand), a colon and the entries; indented lines go on
    with
it. `x?` records that `x` was looked at and found harmless, also where it is the beginning of a sharp option.
"""

from __future__ import annotations

TABLE = r"""
# version control
git: /^[\w+-]+:: --output --ext-diff --upload-pack --receive-pack --exec-path --config-env --git-dir --work-tree
git log, git diff, git show, git whatchanged, git diff-tree, git diff-index, git diff-files: --output --ext-diff
    --textconv --no-index -O --stdin
git range-diff: --output --ext-diff --textconv --no-index -O
git help: -w -i --web --info
git stash: /^(?:drop|clear)$ --output --ext-diff
git grep: -O --open-files-in-pager --no-index --ext-grep -f --textconv --untracked --no-exclude-standard
git blame: --contents --textconv
git cat-file: --textconv --filters --batch --batch-check --batch-command --batch-all-objects
git mv: -f --force
git branch: -d -D -m -M -c -C -f -u --delete --move --copy --force --edit-description --set-upstream-to
    --unset-upstream
git tag: -d -f -F --delete --force --file
git add: -f --force --pathspec-from-file --chmod
git commit: -F -t --file --template --pathspec-from-file --no-verify -n --amend
git checkout: -f -B --force --orphan --pathspec-from-file --ours --theirs /^(?:\.|--)$ /^\./$ /^:/
git switch: -f -C --force --force-create --discard-changes --orphan
git restore: --pathspec-from-file /^\.$ /^:/
git reset: --hard --merge --keep --pathspec-from-file
git clean: -f -d -x -X --force
git rm: -r -f --force --pathspec-from-file /^\.$
git merge: -s --strategy -F --file --no-verify
git cherry-pick, git revert: -s --strategy
git rebase: -x -i -s --exec --interactive --strategy --root --no-verify
git fetch: /:// /^[\w.-]+@[\w.-]+: --upload-pack --receive-pack --exec --server-option -u /^ext:: /^-o -f --force
    --prune -p /^\+
git pull: /:// /^[\w.-]+@[\w.-]+: --upload-pack --receive-pack --exec --server-option -u /^ext:: /^-o -f -s --force
    --strategy /^\+
git push: /:// /^[\w.-]+@[\w.-]+: --upload-pack --receive-pack --exec --server-option -u /^ext:: /^-o -f -d --force
    --force-with-lease --force-if-includes --delete --mirror --prune --all --no-verify /^\+ /^:
git clone: --upload-pack --receive-pack --exec --server-option -u /^ext:: /^-o -c --config --template
    --separate-git-dir --reference --recurse-submodules --recursive
git ls-remote: --upload-pack --receive-pack --exec --server-option -u /^ext:: /^-o
git archive: --upload-pack --receive-pack --exec --server-option -u /^ext:: /^-o -o --output --remote
git remote: /^(?:add|rm|remove|rename|set-url|set-head|set-branches|prune|update)$
git reflog: /^(?:expire|delete|drop)$
git config: /^[A-Za-z][A-Za-z0-9-]*\. -f -e --global --system --file --edit --add --replace-all --unset --unset-all
    --rename-section --remove-section --blob /^(?:set|unset|edit|rename-section|remove-section)$
git submodule: /^(?:add|foreach|update|deinit|set-url|sync|summary)$
git bisect: /^(?:run|replay|visualize)$
git worktree: /^(?:remove|move|prune|repair)$ -f --force
git notes: /^(?:remove|prune|merge)$ -F --file
git difftool: -x -t --extcmd --tool
git mergetool: -t --tool
git apply: --unsafe-paths --directory
git format-patch: -o --output-directory --output --signature-file --cover-from-description
git init: --template --separate-git-dir
git update-ref, git filter-branch: *
hg: --config --config-file --cwd -R --repository --pager --debugger
svn: --config-dir --config-option --diff-cmd --diff3-cmd --editor-cmd @checkout @export @commit @delete @import
gh: @api @auth @alias @extension @secret @ssh-key @gpg-key @codespace @config @gist @repo @release @variable @cs
    @workflow @cache @ruleset @attestation -F -f --field --raw-field --input --body-file --hostname -X --method
    /^(?:merge|delete|create|close|edit|review|comment|lock|transfer|rerun|cancel|download|checkout|reopen|ready)$
    /^(?:update-branch|revert|unlock|(?:un)?pin|develop|clone|copy|(?:un)?link|(?:un)?archive|item-\w+|field-\w+)$
    /^mark-template$
glab: @api @auth @alias @variable @config @repo @release @ssh-key
# looking at files and data
find: -delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls -files0-from -follow
fd, fdfind: -x -X --exec --exec-batch
rg: --pre --pre-glob --hostname-bin -z --search-zip -f --file --hidden -. -uu -uuu -u --unrestricted
grep, egrep, fgrep: -f --file
ag: --pager -p --path-to-ignore
ack: --pager --ackrc --env --create-ackrc --output -f
sort: -o -T -S --output --compress-program --temporary-directory --files0-from --random-source
uniq: !!
wc: --files0-from
du: --files0-from -X --exclude-from
sed: -i -f -s --in-place --file --separate --expression /^-[A-Za-z]*e.
awk: -f -i -l -E -o -p -d -D -W --file --include --load --exec --dump-variables --profile --pretty-print --debug
    /system|getline|close|fflush|ENVIRON|ARGV|[|>@] /["'][/~.]
perl, raku, [[, read, mapfile, readarray: *
less: -o -O -k -P -T --log-file --LOG-FILE --lesskey-file --lesskey-src /^\+
more: /^\+
man: -P -H -C -M -X -t -T --pager --html --config-file --manpath --troff-device --gxditview --preprocessor -p
bat: --pager --config-file --map-syntax --generate-config-file @cache --diff
tree: -o --output --fromfile --infofile
xxd: -r -revert !!
hexdump: -f
diff: --from-file --to-file
sdiff: -o --output --diff-program
file: -m -f -C -z -Z --magic-file --files-from --compile --uncompress
split: --filter
csplit: -f --prefix
date: -s -f --set --file
tail: --pid
jq: -f --from-file --rawfile --slurpfile -L /\benv\b|\$ENV|\binclude\b|\bimport\b --run-tests
yq: -i -f --inplace --from-file --split-exp -s /\benv|load|\bstrenv
xmllint: --output -o --shell --load-trace --path
xsltproc: -o --output --writesubtree
hostname: /^[^-].* -F
printf: -v
test, [: -v -R /\[.*[$`]
lsof: -D
# archives
tar: /^[^/]*: -I -F -P -C -T -X -f? -O? -x -d? --use-compress-program --to-command --checkpoint-action --checkpoint
    --rsh-command --rmt-command --info-script --new-volume-script --absolute-names --unlink-first --overwrite
    --remove-files --delete --extract --get --directory --one-top-level --transform --xform --files-from
    --keep-directory-symlink --same-owner --recursive-unlink --index-file --volno-file --exclude-from
    /^[A-Za-z]*[xIFCTP][A-Za-z]*$
zip: -T -m -d -u -f -O -b -y --unzip-command --test --move --delete --output-file --temp-path -@ --symlinks
unzip: -o -d -: -x? -K
7z: -o -y -sdel -si @x @e @d @u @rn
gzip: -f --force -S
gunzip: -f
cpio: -i -p -o -F -O -I -E --rsh-command --extract --pass-through --to-stdout --file --no-absolute-filenames
rsync: -e -b -T --rsh --rsync-path --delete --delete-before --delete-after --delete-during --delete-excluded
    --remove-source-files --backup-dir --log-file --files-from --exclude-from --include-from --password-file
    --daemon --config --partial-dir --temp-dir --link-dest --compare-dest --copy-dest --write-batch --read-batch
    --only-write-batch --filter -f --ignore-errors --force --inplace --copy-links -L --super --copy-unsafe-links -M
    --remote-option --early-input --del /^[^/]*:
# the network
curl: -o -O -T -d -F -K -E -X -u -b -c -D -H? -n -x -U -w -J -P -Q -t -C -e -A? -Y? --output --output-dir
    --remote-name --remote-name-all --upload-file --data --data-ascii --data-binary --data-raw --data-urlencode
    --form --form-string --json --config --cert --key --cacert --capath --request --user --cookie --cookie-jar
    --dump-header --netrc --netrc-file --netrc-optional --proxy --proxy-user --write-out --quote --telnet-option
    --trace --trace-ascii --stderr --libcurl --unix-socket --abstract-unix-socket --hsts --alt-svc --etag-save
    --etag-compare --url-query --url --resolve --connect-to --interface --engine --egd-file --random-file
    --mail-from --mail-upload --ftp-port --socks4 --socks5 --preproxy --proto-default --oauth2-bearer --aws-sigv4
    --pubkey --krb --create-dirs --create-file-mode --remote-header-name --continue-at --next --insecure -k
    /^(?i:file|dict|gopher|ftp|scp|sftp|smb|ldap|telnet|tftp): /^(?:-[A-Za-z]*H|--(?:proxy-)?header=)?@ /^--expand-
    --variable /169\.254\.169\.254|metadata\.google\.|100\.100\.100\.200|fd00:ec2:|2852039166|0xa9fea9fe
wget: -O -o -a -i -P -e -B -x -r -m -U -N? -b -p --output-document --output-file --append-output --input-file
    --directory-prefix --execute --config --post-data --post-file --body-data --body-file --method --use-askpass
    --load-cookies --save-cookies --header --ca-certificate --certificate --private-key --warc-file --mirror
    --recursive --background --rejected-log --user --password --ask-password --http-user --http-password --proxy
    --no-check-certificate --hsts-file --auth-no-challenge --content-disposition --trust-server-names --default-page
http, https, aria2c, nc, ncat, netcat, socat, telnet, ftp, sftp, tftp, ssh-keygen, ssh-add, ssh-agent: *
openssl, gpg, mail, sendmail, rclone: *
ssh: ! -o -F -L -R -D -W -w -J -E -I -S -O -i -M -A -X -Y -l -p -f -N
scp: -o -F -S -J -i -D -r -P /^[^/]*:
nmap: --script --script-args -o -oN -oX -oG -oA -iL --datadir --servicedb
dig: -f -k -y
ping: -f
tcpdump: -z -w -W -G -r -F
aws, gcloud, az: !
# files
rm: -r -R -f -d --recursive --force --dir --no-preserve-root /^\.?/?$ /^\*$
rmdir: -p --parents
cp: -l -s -L -a -d -P --link --symbolic-link --remove-destination --parents --archive -t --target-directory -f
    --force
mv: -t -f --force --target-directory --exchange
ln, link, install, truncate, dd, shred, unlink, mkfifo, mknod, chown, chgrp, chattr, setfacl, rename: *
mount, umount, crontab, at, batch: *
chmod: -R --recursive --reference /[+=,][^,]*[st] /^[2467]\d{3}$
touch: -r -d --reference
patch: -o -r -d -B -z -i --output --reject-file --directory --input --posix -D -e --ed
mktemp: -p --tmpdir
mkdir: -m --mode
# programs that run what they are given
python, python2, python3, pypy, pypy3: -c -m -i -x -X /^-$
ipython, electron, pwsh, powershell, cmd, osascript, expect, ex, ed, eval, source, ., exec, alias: *
unalias, export, declare, set, typeset, local, readonly, unset, shopt, trap, enable, hash, builtin: *
command, env, complete, bind, function, let, coproc, getopts, umask, ulimit, fc, history, logout, suspend: *
sudo, su, doas, pkexec, runuser, chroot, unshare, nsenter, setpriv, capsh, xargs, parallel, watch, entr: *
screen, tmux, direnv, dotenv, op, systemd-run, firejail, proxychains, proxychains4, torsocks, hyperfine: *
script, gdb, lldb, strace, ltrace, perf, kill, pkill, killall, reboot, shutdown, halt, service, launchctl: *
defaults, mkfs, fdisk, parted, diskutil, iptables, nft, ufw, useradd, usermod, passwd, visudo, modprobe: *
node, nodejs, ts-node, tsx: -e -p -r -i --eval --print --require --import --loader --experimental-loader --env-file
    --inspect --inspect-brk --interactive --run --test-reporter --test? --watch? --watch-path --build-snapshot
    --openssl-config --icu-data-dir --experimental-policy --redirect-warnings --report-dir --diagnostic-dir
    --cpu-prof-dir --heap-prof-dir --env-file-if-exists --experimental-config-file --experimental-sea-config
    --trace-event-file-pattern --localstorage-file --snapshot-blob --title /^-$ /^data:
deno: @eval @repl @install @run? @upgrade @compile -A --allow-all --allow-run --allow-write --allow-read --allow-net
    --allow-env --allow-ffi --allow-sys -c --config --import-map -r --reload --preload -e /^https?: /^npm: /^jsr:
    /^-$
bun: @x @create @install? @pm @link @upgrade -e -p -r --eval --print --preload --cwd --config --env-file --shell
    /^-$
ruby: -e -r -I -C -i -x -S -n -p /^-$
php: -r -d -c -B -R -F -E -S -a -z -f? --run --define --php-ini --server
lua: -e -l -i /^-$
Rscript: -e --eval --args?
julia: -e -E -L -J -p --eval --print --load --sysimage
sh, bash, zsh, dash, ksh: -c -s -i -l -o -O --rcfile --init-file --login /^-$ /^\+
fish: -c -s -i -l -o -O --rcfile --init-file --login /^-$ /^\+ -C --command --init-command
tclsh: /^-$
groovy: -e -c -p -i -n
scala, kotlin: -e
java: -jar -cp -classpath -javaagent -agentlib -agentpath /^-XX: /^-Xbootclasspath /^-D /^@
vim, vi, nvim, view: /:// /^(?:sudo|scp|ftp|rsync|dav|fetch): -c -S -s -u -U -w -W -r -E -e --cmd --startuptime
    --listen --remote --servername --eval --load
    --batch --script --funcall -i -V /^\+
emacs: -c -S -s -u -U -w -W -r -E -e --cmd --startuptime --listen --remote --servername --eval --load --batch
    --script --funcall -i -V /^\+ -l -f -Q?
nano: -s -C --speller --backupdir --rcfile -f
code: --install-extension --user-data-dir --extensions-dir --remote
time: -o -a -f --output --append --format
flock: -c --command
busybox, toybox, systemctl: !
sysctl: -w --write -p /=
# building, testing, packages
npm install, npm i, npm add, npm ci, pnpm install, pnpm i, pnpm add, yarn add, bun add, bun install: /://
    /(?:^|@)(?:git|github|gitlab|bitbucket|gist|file|link|portal|patch|npm|https?|ssh)[:+@] /^[\w.-]+/[\w.-]+$
    /\.(?:tgz|tar|tar\.gz)$
npm: - + --depth --silent -s --if-present --json --long --all --help --version -v -h -q --quiet --verbose --no-color
    --dry-run --frozen-lockfile --immutable --offline --prefer-offline -D --save-dev -E --save-exact --dev -P --prod
    @exec @x @dlx @create @init @publish @unpublish @config @set @explore @edit @link @unlink @token @login @adduser
    @owner @access @deprecate @dist-tag @hook @profile @team @star @node @bin @env @plugin @import @version @patch
    @store @cache @rebuild @approve-builds @self-update @setup -- -w --workspace --workspaces -ws
pnpm: - + --depth --silent -s --if-present --json --long --all --help --version -v -h -q --quiet --verbose --no-color
    --dry-run --frozen-lockfile --immutable --offline --prefer-offline -D --save-dev -E --save-exact --dev -P --prod
    @exec @x @dlx @create @init @publish @unpublish @config @set @explore @edit @link @unlink @token @login @adduser
    @owner @access @deprecate @dist-tag @hook @profile @team @star @node @bin @env @plugin @import @version @patch
    @store @cache @rebuild @approve-builds @self-update @setup -- -r --recursive --filter @deploy @server
    /^(?:exec|dlx|publish)$
yarn: - + --silent -s --if-present --json --long --all --help --version -v -h -q --quiet --verbose --no-color
    --dry-run --frozen-lockfile --immutable --offline --prefer-offline -D --save-dev -E --save-exact --dev -P --prod
    @exec @x @dlx @create @init @publish @unpublish @config @set @explore @edit @link @unlink @token @login @adduser
    @owner @access @deprecate @dist-tag @hook @profile @team @star @node @bin @env @plugin @import @version @patch
    @store @cache @rebuild @approve-builds @self-update @setup -- @run? @workspaces? @up @npm @global @policies
    /^(?:exec|dlx|publish|node|npm)$
npx: ! - + --no-install --version --help
bunx, pnpx, uvx, pipx: !
corepack, nvm, volta, fnm: *
asdf: @exec @plugin
mise: @exec @x @run
make: -f -C -I -E -o -W --file --makefile --directory --include-dir --eval --old-file --new-file --assume-old
    /^[^-].*= /^-[A-Za-z]*= /^--.*=.*=
gmake: -f -C -I -E --file --makefile --directory --include-dir --eval /=
just: -f -d --justfile --working-directory --shell --shell-arg --shell-command --set --command -c --chooser -e
    --edit --dotenv-path --dotenv-filename
task: -t -d --taskfile --dir -g --global
cmake: -P -E -C -D -S -B -G -T --build? --install --toolchain --preset --open
ninja: -f -C -t
bazel: @run --run_under --output_base --output_user_root --bazelrc @clean
cargo: --fix --config -C -Z --manifest-path --target-dir --out-dir --artifact-dir @run @install @publish @login
    @owner @yank @clean @uninstall @init @new @fix --target? /^\+ -- --git --path --registry --index
rustc: -C -o -Z -L --codegen --out-dir --extern --sysroot --emit
rustup: @run @toolchain @self @override
go: @run @get @install @generate @env @clean @tool @work @telemetry -exec -toolexec -C -o -overlay -modfile -ldflags
    -gcflags -asmflags -gccgoflags -pkgdir -mod -modcacherw -vettool -fix -outputdir -cpuprofile -memprofile -trace
    -blockprofile -mutexprofile -coverprofile -test.outputdir -args -fuzzcachedir
    /^--?test\.\w*(?:profile|trace|file|dir)\b
pytest: -p -c -o -W --basetemp --rootdir --confcutdir --import-mode --junitxml --junit-xml --log-file --cov-config
    --pyargs --report-log --override-ini --pdbcls --pdb --trace --cache-clear /^--cov-r(?!eport=term(?:-missing)?$)
    --resultlog --pastebin
    --debug
    --config-file --html --json-report-file --looponfail -f --rsyncdir --tx --dist --cov? --co? --color? --pdb? /^@
tox: -c -x --conf --override --workdir --root --installpkg -- --index-url
nox: -f --noxfile --envdir -- --default-venv-backend
coverage: @run --rcfile --data-file -o -d
mypy: --config-file --python-executable --install-types --cache-dir --custom-typeshed-dir --html-report --xml-report
    --txt-report --any-exprs-report -c -m --junit-xml --shadow-file --cobertura-xml-report --linecount-report
    --linecoverage-report --lineprecision-report --memory-xml-report --quickstart-file
ruff: --config --fix --unsafe-fixes --fix-only --add-noqa --output-file -o @clean @server --cache-dir --isolated?
    --extension
black: --config -c --code --stdin-filename
isort: --settings-path --sp --settings-file
flake8: --config --append-config --output-file --tee --install-hook
pylint: --rcfile --init-hook --load-plugins --output
eslint: -c -o -f --format --fix --config --output-file --resolve-plugins-relative-to --rulesdir --parser --plugin
    --fix-dry-run
    --cache-location --cache? --init --no-eslintrc --flag
prettier: -w --write --config --plugin --plugin-search-dir --cache-location --cache?
tsc: --outDir --outFile --build -b --declarationDir --tsBuildInfoFile --init --plugins --generateTrace -w --watch
    --generateCpuProfile /^@
    /^(?i:--?(?:out(?:dir|file)|declarationdir|tsbuildinfofile|generate\w+|build|init|plugins))
jest: -c --config --globalSetup --globalTeardown --setupFiles --setupFilesAfterEnv --runner --testRunner --rootDir
    --reporters --resolver --transform --testEnvironment --outputFile --coverageDirectory --cacheDirectory
    --coverage? --cache? --roots --init --testResultsProcessor --env --filter --watch --watchAll -u --updateSnapshot
    --clearCache --modulePaths --haste --prettierPath
vitest: -c -r --config --root --dir --globals? --environment --reporter --outputFile --update -u --ui --api --watch
    -w
mocha: -r -f? --require --file --config --opts --package --reporter -R --reporter-option -O --extension? --ui
    --import
webpack: -c --config
vite: -c --config --outDir --host
rollup: -c -p --config --plugin -o -d --file --dir
esbuild: --outfile --outdir --serve --servedir --log-override? --allow-overwrite
rspec: -r -I -o --require --out --options -f --format
rake: -f -r -e -E -p -I --rakefile --require --execute --execute-print --execute-continue --libdir --rakelibdir /=
bundle: @exec @config @add @install? @open @console @gem @plugin @init
gem: @install @push @uninstall @exec @fetch @cert @owner @yank --config-file -i --install-dir -n --bindir --source
    -s
pip: -r -t -e -c -i -f -d --requirement --target --editable --constraint --index-url --extra-index-url --find-links
    --prefix --root --src --python --config-settings --global-option --install-option --build-option --proxy --cert
    --client-cert --trusted-host --cache-dir --log --user --break-system-packages --report --dest --pre @uninstall
    @config @download @cache @wheel /^git\+ /:// /@ --requirements-from-script
uv: @run @tool @publish @self @cache @python --directory --project --config-file --index --index-url
    --extra-index-url --default-index --find-links -i -f --cache-dir --python -p --with --with-editable
    --with-requirements @pip? --env-file --allow-insecure-host --keyring-provider --target --prefix @auth --clear
    -o --output-file -r --requirements -e --editable -c --constraints --git --url /:// /^git\+
    /@\s*(?:git|https?|file)\b
    /^uninstall$
uv run: -m -s --module --script --gui-script --gui /^-$
poetry: @run @publish @config @source @self @shell @cache -C -P --directory --project --source
hatch: @run @shell @publish @config @env @python
pdm: @run @publish @config @plugin -p --project -c --config
conda: @run @install @remove @create @config @clean @uninstall @env --file -p --prefix -n --name -c --channel
pre-commit: @install @uninstall @autoupdate @clean @init-templatedir @try-repo -c --config
mvn: -f -s -gs -t -D -P -b --file --settings --global-settings --toolchains --builder /^exec: /^deploy
    /^org\.codehaus /:.*:
gradle: -I -b -c -p -g -D -P --init-script --build-file --settings-file --project-dir --gradle-user-home
    --include-build --project-cache-dir /^publish
dotnet: @run @exec @tool @nuget @new @publish? -p /^[/-]p: --configfile --source @add @script @fsi /^[/-]logger
composer: @exec @run-script @global @config @create-project @require @self-update @run -d --working-dir
swift: @run --package-path -Xcc -Xswiftc
zig: @run @build? @init
mix: @run @do @cmd @archive.install @local.hex -e @release @hex.publish
brew: @install @uninstall @remove @tap @untap @services @edit @create @link @upgrade @cleanup @sh @irb @ruby @bundle
    @reinstall --debug
apt, apt-get: -o -c -t --option --config-file @remove @purge @autoremove
dpkg: -i -r -P --install --remove --purge --root --admindir
gcc: -o -B -wrapper -specs -fplugin -include -x /^@ -Wl -Xlinker -dumpdir -save-temps
g++: -o -B -wrapper -specs -fplugin -include -x /^@ -Wl
clang: -o -B -fplugin -Xclang -include -x /^@ -Wl --config
cc: -o -B -wrapper -specs -fplugin /^@ -Wl
# machines, services, databases
docker, podman, nerdctl: @run @exec @cp @rm @rmi @prune @kill @push @login @logout @save @load @export @import
    @commit @swarm @stack @service @secret @plugin @context @buildx @create @update @system @volume @network @node
    @config @builder @trust @start @attach @rename @tag
docker run, podman run, docker create: -v -p -u -d --volume --mount --privileged --cap-add --device --net --network
    --pid --ipc --uts --userns --security-opt --env-file -e --env --entrypoint --add-host --gpus --volumes-from
    --cgroupns --publish --user
docker exec: --privileged -u --user -e --env --env-file -w --workdir -d
docker build: -f -o --file --output --build-context --secret --ssh --allow --network --build-arg --iidfile
    --metadata-file --push --builder /^https?: /^git /^-$
docker compose: @run @exec @down @rm @kill @cp @push -v --volumes --rmi -f --file --project-directory --env-file
    /^(?:run|exec|down|rm|kill|cp|push|publish|commit|export|import|attach|alpha)$
docker-compose: @run @exec @down @rm @kill @cp @push -v --volumes --rmi -f --file --project-directory --env-file
docker image: /^(?:rm|prune|push|load|import|save|tag|build)$ -f
docker container: /^(?:rm|prune|run|exec|cp|kill|start|create|export|attach|commit|rename|update|restart|stop)$
kubectl: @exec @delete @apply @edit @patch @replace @create @run @cp @drain @cordon @taint @scale @attach
    @port-forward @proxy @set @label @annotate @expose @autoscale @config @certificate @debug @rollout @plugin @auth
    --kubeconfig --server -s --token --as --as-group --context --cluster --user --insecure-skip-tls-verify --raw -f
    --filename -k --kustomize --template --client-certificate --client-key /(?i)(?:^|[,/])secrets?\b --cache-dir
    --profile-output
    --output-directory /^dump$
helm: @install @upgrade @uninstall @delete @rollback @plugin @push @repo @registry @pull @test --post-renderer
    --kubeconfig --kube-context -f --values --set-file --output-dir --set --repo
terraform: @apply @destroy @import @state @taint @untaint @console @login @logout @init? @force-unlock @workspace
    -chdir -out -state -state-out -backup -var-file -plugin-dir -backend-config -destroy -auto-approve -from-module
    -generate-config-out -migrate-state -force-copy -lock /^(?:mirror|lock)$
tofu: @apply @destroy @import @state @taint @console @force-unlock -chdir -out -var-file -plugin-dir -destroy
    -auto-approve
pulumi: @up @destroy @refresh @state @stack @config @import @cancel -C --cwd -y --yes
ansible, ansible-playbook, mongo, mongosh, ffmpeg, convert, magick, claude, codex, gemini, opencode: *
xdg-open, open, start: *
vagrant: @ssh @destroy @up @provision @plugin
heroku, vercel, netlify, fly, flyctl, wrangler, firebase, serverless: !
cdk: @deploy @destroy -a --app --plugin --require-approval
psql: /:// /(?i)\b(?:host(?:addr)?|service|passfile)\s*= -P --pset -c -f -o -L -v -h -d -U -w? -1? --command --file
    --output --log-file --set --variable --host --dbname /\\
    /(?i)drop|delete|truncate|alter|update|insert|copy|grant|create|do\s
mysql: -e --execute --init-command --defaults-file --defaults-extra-file --tee --pager -h --host --plugin-dir
    --local-infile --source
sqlite3: -init -cmd -A -append -vfs -deserialize /(?:^|\n)\s*\. /(?i)fsdir|edit\s*\(
    /(?i)drop|delete|truncate|alter|update|insert|attach|create|replace|vacuum|pragma|load_extension|writefile|readfile|edit\(
redis-cli:
    /(?i)^(?:flush.*|del|unlink|set.*|eval.*|config|module|shutdown|debug|script|slaveof|replicaof|save|bgsave|restore|migrate)$
    --eval -h --rdb --pipe --functions-rdb -u
mysqldump: -r -T --result-file --tab --defaults-file
pg_dump: -f --file -h --host
journalctl: --vacuum-size --vacuum-time --vacuum-files --rotate --flush --cursor-file --directory -D --root --file
pandoc: -o -F -L --output --filter --lua-filter --template --data-dir --extract-media --pdf-engine --defaults -d
    --include-in-header -H --resource-path --log --metadata-file --reference-doc --css -c
pdflatex: --shell-escape -shell-escape -output-directory
ollama: @run @rm @push @create @serve
base64: -o --output
"""
