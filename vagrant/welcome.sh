#!/usr/bin/env bash
# Makes the Vagrant machine, which has all packages by now, ready for who logs in: `emu` for
# everybody with completion, what to type first, and a user `lab` without any rights of root.
# Runs as often as you like; only for a machine that is nothing else.
#
#   welcome.sh CHECKOUT     as root; its owner sets the checkout up
set -euo pipefail
checkout=$1
owner=$(stat --format %U "$checkout")

runuser --login "$owner" --command "make --silent -C $checkout setup"
chmod a+x "$(dirname "$checkout")" # others may pass
ln -sfn "$checkout/.venv/bin/emu" /usr/local/bin/emu
_EMU_COMPLETE=bash_source "$checkout/.venv/bin/emu" >/usr/local/share/emu.bash
# shellcheck disable=SC2016 # whoever logs in expands it
echo '[ -z "$BASH_VERSION" ] || . /usr/local/share/emu.bash' >/etc/profile.d/emu.sh
id --user lab >/dev/null 2>&1 || useradd --create-home --shell /bin/bash lab

cat >/etc/motd <<END

RoCEv2 and InfiniBand fabrics on this machine. Type first:

    emu run emu/topologies/incast.emu.yml --out emu/out/incast      a fabric, its traffic, a report
    cd emu && make demo                                             the same incast on four fabrics

Results in ~/emu/out are on your own computer, too. \`sudo -iu lab\` is somebody who may
nothing but run labs; \`emu --help\` tells the rest.

END
