#!/usr/bin/env bash
# The life of the package on a Debian of its own: installed, used, upgraded while a crawl runs, removed, purged. This
# machine's own files are the Debian, with every change held in memory, in namespaces that end with the script. Its
# systemd is booted there where that can be had; otherwise a stand-in does what maintainer scripts ask of one.
#
#     package.sh DIR OLD.deb NEW.deb        DIR is empty, and in memory
set -euo pipefail

case "$1" in
    root | life) ;;
    *)
        manager=stand-in cgroup=
        hierarchy=$(findmnt -n -t cgroup2 -o TARGET | head -n 1 || true)
        if [ -x /lib/systemd/systemd ] && [ -n "$hierarchy" ] && mkdir "$hierarchy/nephila-package-$$" 2>/dev/null; then
            manager=systemd cgroup=$hierarchy/nephila-package-$$
        fi
        mkdir "$1/upper" "$1/work" "$1/root" "$1/out"
        (
            [ -z "$cgroup" ] || echo $BASHPID >"$cgroup/cgroup.procs"
            exec unshare --mount --pid --fork --kill-child --cgroup --uts --ipc --net \
                bash "${BASH_SOURCE[0]}" root "$@" "$manager"
        ) </dev/null >"$1/out/boot" 2>&1 && status=0 || status=$?
        # What ran in there goes in a moment.
        for _ in $(seq 50); do
            [ -n "$cgroup" ] && ! find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || break
            sleep 0.1
        done
        cat "$1/out/boot" "$1/out/said" 2>/dev/null
        exit "$status"
        ;;
esac

if [ "$1" = root ]; then
    dir=$2 root=$2/root manager=$5
    mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/upper,workdir=$dir/work" "$root"
    mkdir -p "$root/test/out" "$root/old"
    cp "$3" "$root/test/old.deb"
    cp "$4" "$root/test/new.deb"
    cp "${BASH_SOURCE[0]}" "$root/test/package.sh"
    mount -t proc proc "$root/proc"
    mount -t sysfs sysfs "$root/sys"
    for mounted in dev dev/shm run tmp; do
        mkdir -p "$root/$mounted"
        mount -t tmpfs -o mode=1777 tmpfs "$root/$mounted"
    done
    chmod 755 "$root/dev" "$root/run"
    for device in null zero full random urandom tty; do
        touch "$root/dev/$device"
        mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/pts" "$root/dev/mqueue"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    mount --bind "$dir/out" "$root/test/out"
    # A clean Debian: services may start, manual pages and documents are unpacked, and their index is somebody else's.
    rm -rf "$root"/usr/sbin/policy-rc.d "$root"/etc/dpkg/dpkg.cfg.d/* "$root"/var/lib/man-db/auto-update \
        "$root"/etc/systemd/system/*
    ip link set lo up
    if [ "$manager" = stand-in ]; then
        exec chroot "$root" /bin/bash /test/package.sh life stand-in >"$dir/out/said" 2>&1
    fi
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
    # Of the machine's own units, what a service stands on.
    units=$root/lib/systemd/system
    mkdir "$root/test/units"
    for unit in {basic,sysinit,sockets,paths,timers,slices,shutdown,umount,final,multi-user}.target \
        {network-online,network,nss-lookup}.target systemd-journald{.service,.socket,-dev-log.socket}; do
        cp -P "$units/$unit" "$root/test/units/"
    done
    rm -rf "${units:?}"/*
    cp -P "$root"/test/units/* "$units/"
    cat >"$root/run/life.service" <<'EOF'
[Unit]
DefaultDependencies=no
Wants=basic.target systemd-journald.service
After=basic.target systemd-journald.service
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/bash /test/package.sh life systemd
StandardOutput=file:/test/out/said
StandardError=inherit
EOF
    mkdir -p "$root/run/systemd/system"
    mv "$root/run/life.service" "$root/run/systemd/system/"
    cd "$root"
    pivot_root . old
    umount -l old
    exec env -i container=nephila-test PATH="$PATH" /lib/systemd/systemd --system --unit=life.service \
        --log-target=journal --log-level=info --show-status=no
fi

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
cd /test
echo "with $2"
step() { echo "== $SECONDS s: $*"; }
fail() {
    echo "FAILED: $*"
    journalctl --no-pager -o cat -n 40 2>/dev/null || true
    exit 1
}
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

if [ "$2" = stand-in ]; then
    # Runs ExecStart of an instance as its user.
    mkdir -p /run/systemd/system /run/units
    cat >/usr/bin/systemctl <<'EOF'
#!/bin/bash
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
    value() { sed -n "s/^$1=//p" "/usr/lib/systemd/system/$unit@.service" | sed "s/%i/$name/g"; }
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
    list-units) running '*' ;;
    show) cat "/run/units/$1" ;;
    enable) ln -s /usr/lib/systemd/system/nephila@.service "/etc/systemd/system/multi-user.target.wants/$1" ;;
esac
EOF
    chmod 755 /usr/bin/systemctl
fi
mkdir -p /etc/systemd/system/multi-user.target.wants
files | sort >before

step install
dpkg_quietly -i old.deb
! systemctl list-units --plain --no-legend 'nephila*' | grep . || fail "an install started something"
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
setsid "$farm" farm --hosts 10 --pages 200 --hosts-file farm.hosts --seeds-file farm.seeds >/dev/null &
until_so test -s farm.seeds
cp farm.hosts farm.seeds /etc/nephila/
cat >/etc/nephila/news.toml <<'EOF'
[crawl]
seeds_file = "farm.seeds"
hosts_file = "farm.hosts"
allow_net = ["127.0.0.0/8"]
req_host_per_sec = 8.0
EOF
systemctl start nephila@news.service || fail "it does not start"
data=/var/lib/nephila/news
stored() { [ "$(nephila store ls --data $data 2>/dev/null | wc -l)" -gt "$1" ]; }
until_so stored 60
[ "$(stat -c %U $data/crawl.log)" = nephila ] || fail "not crawled as nephila"

step upgrade
echo '# mine' >>/etc/nephila/default.toml
main_pid() { systemctl show nephila@news.service --property MainPID --value; }
before_upgrade=$(main_pid)
dpkg_quietly -i new.deb
is_gone() { [ ! -e "/proc/$1" ] || grep -q '^State:.*Z' "/proc/$1/status"; }
is_gone "$before_upgrade" || fail "the old process runs"
[ "$(tail -n 1 /etc/nephila/default.toml)" = '# mine' ] || fail "the edited settings are gone"
count=$(nephila store ls --data $data | wc -l)
until_so stored $((count + 60))
! is_gone "$(main_pid)" || fail "the crawl ended"
# Pages that were stored before the restart are not asked for again.
twice=$(nephila store ls --all --json --data $data | sed 's/.*"url":"\([^"]*\)".*/\1/' | sort | uniq -d)
[ -z "$twice" ] || fail "fetched twice: $twice"

step remove
systemctl enable nephila@news.service 2>/dev/null
enabled=/etc/systemd/system/multi-user.target.wants/nephila@news.service
[ -L $enabled ] || fail "not enabled"
running=$(main_pid)
dpkg_quietly -r nephila
is_gone "$running" || fail "the crawl was not stopped"
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
