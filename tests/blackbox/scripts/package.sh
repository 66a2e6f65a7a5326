#!/usr/bin/env bash
# The life of the package on a Debian of its own: installed, used, upgraded while a crawl runs, removed, purged. Runs as
# root in a root directory that nobody else sees, in mount and process namespaces that end with it.
#
#     package.sh DIR OLD.deb NEW.deb        DIR is empty, and in memory
set -euo pipefail

if [ "$1" != inside ]; then
    dir=$1
    mkdir "$dir/upper" "$dir/work" "$dir/root"
    # This machine's own files, with every change held in memory.
    mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$dir/root"
    mkdir -p "$dir/root/test"
    cp "$2" "$dir/root/test/old.deb"
    cp "$3" "$dir/root/test/new.deb"
    cp "${BASH_SOURCE[0]}" "$dir/root/test/package.sh"
    mount -t proc proc "$dir/root/proc"
    mount --rbind /dev "$dir/root/dev"
    mount --rbind /sys "$dir/root/sys"
    mount -t tmpfs tmpfs "$dir/root/tmp"
    mount -t tmpfs tmpfs "$dir/root/run"
    exec chroot "$dir/root" /bin/bash /test/package.sh inside
fi

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
cd /test
step() { echo "== $SECONDS s: $*"; }
fail() { echo "FAILED: $*"; exit 1; }
# Asks until it is so.
until_so() {
    for _ in $(seq 600); do
        ! "$@" || return 0
        sleep 0.05
    done
    fail "not within 30 s: $*"
}
dpkg_quietly() { dpkg --force-unsafe-io "$@" >dpkg.log 2>&1 </dev/null || { cat dpkg.log; fail "dpkg $*"; }; }
# Every file where packages have theirs, but for what dpkg and its helpers keep for themselves.
files() {
    find / -maxdepth 1
    find /etc /opt /srv /usr /var -xdev \( -path /var/lib/dpkg -o -path /var/cache -o -path /var/log -o -path /var/backups \
        -o -path '/etc/*-' -o -path /etc/.pwd.lock -o -path /usr/local \) -prune -o -print
}
# What is there and was not before.
left() { files | sort | comm -13 before -; }

# A clean Debian: services may start, manual pages and documents are unpacked.
rm -f /usr/sbin/policy-rc.d /etc/dpkg/dpkg.cfg.d/*
# The index of manual pages is somebody else's.
rm -f /var/lib/man-db/auto-update
# A stand-in for the service manager: runs ExecStart of an instance as its user, and remembers what it was asked.
mkdir -p /run/systemd/system /run/units
cat >/usr/bin/systemctl <<'EOF'
#!/bin/bash
echo "$*" >>/run/asked
[ "$1" != --system ] || shift
verb=$1
shift
running() {
    for pattern; do
        for file in /run/units/$pattern; do
            [ ! -e "$file" ] || basename "$file"
        done
    done
}
stop() {
    pid=$(cat "/run/units/$1")
    kill -TERM "$pid" 2>/dev/null || true
    while [ -e "/proc/$pid" ] && ! grep -q '^State:.*Z' "/proc/$pid/status"; do sleep 0.05; done
    rm "/run/units/$1"
}
start() {
    unit=${1%%@*} name=${1#*@}
    name=${name%.service}
    file=/usr/lib/systemd/system/$unit@.service
    value() { sed -n "s/^$1=//p" "$file" | sed "s/%i/$name/g"; }
    install -d -m "$(value StateDirectoryMode)" -o "$(value User)" -g "$(value Group)" "/var/lib/$(value StateDirectory)"
    cd "$(value WorkingDirectory)"
    umask "$(value UMask)"
    # shellcheck disable=SC2046
    setsid setpriv --reuid "$(value User)" --regid "$(value Group)" --clear-groups $(value ExecStart) \
        >>"/run/log.$name" 2>&1 </dev/null &
    echo $! >"/run/units/$1"
}
case $verb in
    start) start "$1" ;;
    stop) for unit in $(running "$@"); do stop "$unit"; done ;;
    try-restart) for unit in $(running "$@"); do stop "$unit"; start "$unit"; done ;;
esac
EOF
chmod 755 /usr/bin/systemctl
files | sort >before

step install
dpkg_quietly -i old.deb
[ "$(grep -cv daemon-reload /run/asked || true)" = 0 ] || fail "an install started something: $(cat /run/asked)"
id nephila >/dev/null || fail "no user"
[ "$(stat -c '%a %U %G' /etc/nephila)" = "750 root nephila" ] || fail "$(stat -c '%a %U %G' /etc/nephila)"
nephila --version
nephila config template | cmp - /etc/nephila/default.toml || fail "the settings are not the defaults"
nephila config check /etc/nephila/default.toml
for page in man1/nephila.1 man1/nephila-crawl.1 man7/nephila-settings.7; do
    [ "$(mandoc "/usr/share/man/$page.gz" | wc -l)" -gt 20 ] || fail "$page cannot be read"
done
completed=$(bash --norc -c '
    . /usr/share/bash-completion/bash_completion
    _completion_loader nephila
    COMP_WORDS=(nephila crawl --req-host-p) COMP_CWORD=2
    _nephila nephila --req-host-p crawl
    echo "${COMPREPLY[@]}"')
[ "$completed" = --req-host-per-sec ] || fail "completed: $completed"
systemd-analyze --man=no verify nephila@news.service 2>&1 | grep -i nephila && fail "the unit"
for file in /usr/lib/sysctl.d/90-nephila.conf /etc/security/limits.d/90-nephila.conf \
    /usr/share/doc/nephila/manual/settings.md /usr/share/doc/nephila/tuning/ports.md /usr/share/doc/nephila/copyright; do
    [ -s "$file" ] || fail "$file is missing"
done

step use
farm=/test/farm
cp /usr/bin/nephila "$farm"
"$farm" farm --hosts 10 --pages 200 --hosts-file farm.hosts --seeds-file farm.seeds >/dev/null &
until_so test -s farm.seeds
cp farm.hosts farm.seeds /etc/nephila/
cat >/etc/nephila/news.toml <<'EOF'
[crawl]
seeds_file = "farm.seeds"
hosts_file = "farm.hosts"
allow_net = ["127.0.0.0/8"]
req_host_per_sec = 8.0
EOF
systemctl start nephila@news.service
data=/var/lib/nephila/news
stored() { [ "$(nephila store ls --data $data 2>/dev/null | wc -l)" -gt "$1" ]; }
until_so stored 60
[ "$(stat -c %U $data/crawl.log)" = nephila ] || fail "not crawled as nephila"

step upgrade
echo '# mine' >>/etc/nephila/default.toml
before_upgrade=$(cat /run/units/nephila@news.service)
dpkg_quietly -i new.deb
grep -q '^try-restart ' /run/asked || fail "not restarted: $(cat /run/asked)"
[ "$(cat /run/units/nephila@news.service)" != "$before_upgrade" ] || fail "the old process runs"
[ ! -e "/proc/$before_upgrade" ] || fail "the old process was left"
[ "$(tail -n 1 /etc/nephila/default.toml)" = '# mine' ] || fail "the edited settings are gone"
count=$(nephila store ls --data $data | wc -l)
until_so stored $((count + 60))
[ -e "/proc/$(cat /run/units/nephila@news.service)" ] || fail "the crawl ended: $(cat /run/log.news)"
# Pages that were stored before the restart are not asked for again.
twice=$(nephila store ls --all --json --data $data | sed 's/.*"url":"\([^"]*\)".*/\1/' | sort | uniq -d)
[ -z "$twice" ] || fail "fetched twice: $twice"

step remove
mkdir -p /etc/systemd/system/multi-user.target.wants
enabled=/etc/systemd/system/multi-user.target.wants/nephila@news.service
ln -s /usr/lib/systemd/system/nephila@.service $enabled
running=$(cat /run/units/nephila@news.service)
dpkg_quietly -r nephila
[ ! -e "/proc/$running" ] || grep -q '^State:.*Z' "/proc/$running/status" || fail "the crawl was not stopped"
kept='^/etc/nephila(/(default.toml|news.toml|farm.hosts|farm.seeds))?$|^/var/lib/nephila(/news(/.*)?)?$'
kept="$kept|^/etc/security/limits.d/90-nephila.conf$|^$enabled$"
! left | grep -Ev "$kept" || fail "left after a removal"
[ -s $data/crawl.log ] && [ -e /etc/nephila/default.toml ] || fail "a removal took data or settings"

step reinstall
dpkg_quietly -i new.deb
[ "$(tail -n 1 /etc/nephila/default.toml)" = '# mine' ] || fail "the edited settings are gone"
nephila store verify --data $data >/dev/null || fail "the data is damaged"

step purge, and keep the data
dpkg_quietly -P nephila
grep -q "crawls are kept in /var/lib/nephila" dpkg.log || { cat dpkg.log; fail "nothing is said of the data"; }
kept='^/etc/nephila(/(news.toml|farm.hosts|farm.seeds))?$|^/var/lib/nephila(/news(/.*)?)?$'
! left | grep -Ev "$kept" || fail "left after a purge"
[ -s $data/crawl.log ] && [ -e /etc/nephila/news.toml ] || fail "a purge took data that it was not told to take"

step purge, and delete the data
dpkg_quietly -i new.deb
echo nephila nephila/purge-data boolean true | debconf-set-selections
dpkg_quietly -P nephila
! left | grep . || fail "left after all was deleted"
! id nephila 2>/dev/null || fail "the user is left"
! debconf-show nephila | grep . || fail "the question is left"
step done
