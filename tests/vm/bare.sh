#!/bin/bash
# Nothing is missing from provision.sh's list: a bare Debian 12, made in TREE, is provisioned twice,
# the second time without any change, and somebody who is not root sets the checkout up there
# and runs labs. Takes root, debootstrap and some minutes.
#
#   bare.sh TREE
set -euo pipefail

say() {
    echo "--- $*" >&2
}

make_tree() {
    local mirror
    # shellcheck disable=SC2016 # apt expands it
    read -r mirror < <(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm')
    say "a bare Debian 12 from $mirror"
    debootstrap --variant=minbase bookworm "$tree" "$mirror" >/dev/null
}

# The checkout as a stranger gets it, and this machine's ways to reach packages.
furnish() {
    mkdir -p "$tree/srv/emu"
    git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$tree/srv/emu"
    local file
    for file in resolv.conf pip.conf; do
        [[ -e /etc/$file ]] && cp "/etc/$file" "$tree/etc/$file"
    done
}

# Runs the rest of this script with the tree as its root. In a chroot nobody may have namespaces.
enter() {
    # shellcheck disable=SC2016 # the inner shell expands these
    exec unshare --mount --pid --fork --kill-child --propagation private bash -c '
        mount --bind "$1" "$1"
        cd "$1"
        mount -t proc proc proc
        mount --rbind /dev dev
        mount -t tmpfs tmpfs run
        mkdir -p run/old
        pivot_root . run/old
        umount --lazy /run/old
        cd /srv/emu
        exec bash tests/vm/bare.sh --inside' - "$tree"
}

inside() {
    export HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin
    say "provision.sh, for the first time"
    vagrant/provision.sh 2>/dev/null
    local before
    before=$(everything)
    say "and again"
    vagrant/provision.sh
    diff <(echo "$before") <(everything)
    useradd --create-home lab
    chown -R lab: /srv/emu
    # shellcheck disable=SC2016 # the inner shell expands it
    setpriv --reuid=lab --regid=lab --clear-groups env HOME=/home/lab bash -euc '
        make setup
        export PATH=$PWD/.venv/bin:$PATH
        emu check
        for clock in virtual real; do
            emu run topologies/incast.emu.yml --clock $clock --out /tmp/$clock --json >/dev/null
        done'
    say "ok"
}

# Every file with its size, time and mode.
everything() {
    find / -xdev -path /proc -prune -o -path /run -prune -o -printf '%p %s %T@ %m %l\n' | sort
}

if [[ $1 == --inside ]]; then
    inside
else
    tree=$(realpath -m "$1")
    make_tree
    furnish
    enter
fi
