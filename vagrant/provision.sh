#!/usr/bin/env bash
# Installs the Debian packages the emulator needs. This file is the one place
# that knows which they are.
#
#   vagrant/provision.sh           install what is missing (root, or sudo)
#   vagrant/provision.sh --check   only look: exit 0 when nothing is missing
#   vagrant/provision.sh --list    print the package names, one a line
#   vagrant/provision.sh --vm      install what is missing, and what `make vm-test` needs
#
# Packages that bring a daemon (Open vSwitch, OpenSM) do not get it started or
# enabled: every lab runs its own, in its own namespaces.
set -euo pipefail

# Each package; with `=`, the upstream version the project is tested with, where
# it relies on how that version behaves.
packages=(
    # the lab
    mininet=2.3.0
    openvswitch-switch=3.1.0
    iproute2
    iputils-ping
    iperf3
    libfaketime
    util-linux
    # InfiniBand's control plane
    opensm=3.3.23
    ibsim-utils=0.10
    libumad2sim0=0.10
    infiniband-diags
    # Ethernet's control plane
    frr=8.4.4
    # the management network
    nftables
    prometheus
    # MPI programs across a lab
    openmpi-bin
    python3-mpi4py
    # captures, as a second opinion
    tshark=4.0.17
    # verbs programs, for tests
    ibverbs-utils
    rdmacm-utils
    perftest
    python3-pyverbs
    ucx-utils
    libfabric-bin
    fio
    qperf
    # building the C core, the verbs library and the eBPF marker
    gcc
    libc6-dev
    make
    clang
    libbpf-dev
    libdeflate-dev
    libibverbs-dev=44.0
    librdmacm-dev=44.0
    python3
    python3-dev
    python3-venv
    # make lint
    clang-format
    shellcheck
    git
    ca-certificates
)

# make vm-test
vm_packages=(
    qemu-system-x86
    # the first programs in the machine (initramfs)
    busybox-static
    kmod
)

# make bare-test
bare_packages=(
    debootstrap
)

policy=/usr/sbin/policy-rc.d
policy_mark="# Until vagrant/provision.sh is done: no service is started."

main() {
    case ${1:-} in
        --list) list ;;
        --check) check ;;
        --vm)
            packages+=("${vm_packages[@]}")
            provision "$@"
            ;;
        --bare)
            packages+=("${bare_packages[@]}")
            provision "$@"
            ;;
        "") provision ;;
        *)
            say "usage: vagrant/provision.sh [--check | --list | --vm | --bare]"
            exit 2
            ;;
    esac
}

say() {
    echo "provision: $*" >&2
}

list() {
    printf '%s\n' "${packages[@]%%=*}"
}

# Prints those of the packages named that are installed; all that are, when none is named.
installed() {
    { dpkg-query -W -f='${db:Status-Abbrev}|${Package}\n' "$@" 2>/dev/null || true; } |
        sed -n 's/^.i *|//p' | sort -u
}

missing() {
    comm -23 <(list | sort) <(installed "${packages[@]%%=*}")
}

check() {
    local absent
    mapfile -t absent < <(missing)
    [[ ${#absent[@]} -eq 0 ]] && return
    say "missing: ${absent[*]}"
    say "install them with: sudo apt-get install --no-install-recommends ${absent[*]}"
    return 1
}

provision() {
    [[ -z $(missing) ]] && return
    if [[ $EUID -ne 0 ]]; then
        become_root "$@"
    fi
    local absent before
    mapfile -t absent < <(missing)
    before=$(installed)
    say "installing ${absent[*]}"
    forbid_services
    install_packages "${absent[@]}"
    leave_disabled "$(comm -13 <(echo "$before") <(installed))"
    warn_of_other_versions
}

become_root() {
    if ! command -v sudo >/dev/null; then
        check || say "this needs root and there is no sudo: run it as root, once"
        exit 1
    fi
    exec sudo -- "$(realpath "${BASH_SOURCE[0]}")" "$@"
}

# Debian asks this script before it starts a service; 101 means no.
forbid_services() {
    if [[ -e $policy ]] && ! grep -qxF "$policy_mark" "$policy"; then
        return # somebody else's rules stay
    fi
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\n%s\nexit 101\n' "$policy_mark" >"$policy"
    chmod 755 "$policy"
}

# Fetches new package lists only when those at hand do not do.
install_packages() {
    export DEBIAN_FRONTEND=noninteractive
    local get=(apt-get -qq -o Dpkg::Use-Pty=0)
    local install=("${get[@]}" install --no-install-recommends "$@")
    "${install[@]}" </dev/null >&2 && return
    say "trying again with new package lists"
    "${get[@]}" update >&2
    "${install[@]}" </dev/null >&2
}

# Disables the units that came with the packages named, one a line.
leave_disabled() {
    command -v systemctl >/dev/null || return 0
    local units
    mapfile -t units < <(xargs -r dpkg-query -L <<<"$1" |
        sed -nE 's|^(/usr)?/lib/systemd/system/([^/@]+\.(service\|socket\|timer))$|\2|p')
    if [[ ${#units[@]} -gt 0 ]]; then
        systemctl --quiet disable "${units[@]}" >&2
    fi
}

warn_of_other_versions() {
    local package wanted version
    for package in "${packages[@]}"; do
        [[ $package == *=* ]] || continue
        wanted=${package#*=}
        package=${package%%=*}
        version=$(dpkg-query -W -f='${source:Upstream-Version}' "$package")
        [[ $version == "$wanted" ]] ||
            say "warning: $package is version $version; the project is tested with $wanted"
    done
}

main "$@"
