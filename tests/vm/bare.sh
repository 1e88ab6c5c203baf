#!/bin/bash
# Nothing is missing from provision.sh's list: a bare Debian 12, made in TREE, is provisioned twice,
# the second time without any change; then the checkout is set up there as for Vagrant, and
# somebody who is not root runs labs. Takes root, debootstrap and some minutes.
#
#   bare.sh TREE
set -euo pipefail
HOME_OF_CHECKOUT=/home/vagrant/emu

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
    for file in /etc/resolv.conf /etc/pip.conf /usr/local/share/ca-certificates; do
        if [[ -e $file ]]; then
            cp --recursive "$file" "$tree$(dirname $file)"
        fi
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
    unset TMPDIR XDG_RUNTIME_DIR # folders of the machine, which the tree does not have
    say "provision.sh, for the first time"
    vagrant/provision.sh >/dev/null 2>&1
    local before
    before=$(everything)
    say "and again"
    vagrant/provision.sh
    diff <(echo "$before") <(everything)
    say "and what make vm-test needs, twice"
    vagrant/provision.sh --vm >/dev/null 2>&1
    before=$(everything)
    vagrant/provision.sh --vm
    diff <(echo "$before") <(everything)
    local program
    for program in qemu-system-x86_64 busybox depmod ibv_devices; do
        command -v $program >/dev/null || {
            say "provision.sh --vm brings no $program"
            exit 1
        }
    done
    say "and welcomes, twice"
    useradd --create-home vagrant
    cp --recursive . $HOME_OF_CHECKOUT
    chown --recursive vagrant: $HOME_OF_CHECKOUT
    vagrant/welcome.sh $HOME_OF_CHECKOUT
    vagrant/welcome.sh $HOME_OF_CHECKOUT
    say "labs of somebody who is not root"
    runuser --login lab -c "
        set -eu
        complete -p emu
        emu check
        incast=$HOME_OF_CHECKOUT/topologies/incast.emu.yml
        emu run \$incast --clock virtual --json >/dev/null
        emu run \$incast --json >/dev/null || test \$? -eq 5 # where much else runs, it is late"
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
