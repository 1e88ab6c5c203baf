#!/bin/bash
# The first thing that runs in the machine. Its root is this computer's files by 9p, which asks
# the host about every name at every use; the same files once more, with a cache, are ten times
# quicker. Then it serves: each line is a script in base64, each answer its exit code.
#
#   inside.sh SHARED KERNEL     folders: writable, and of the kernel's modules
set -euo pipefail
shared=$1 kernel=$2 checkout=$PWD root=/run/root

mkdir $root /run/checkout
mount -t 9p -o ro,version=9p2000.L,trans=virtio,access=any,msize=524288,cache=loose files $root
mount --bind "$root$checkout" /run/checkout # which may lie in /tmp
for folder in tmp var/tmp var/log var/cache; do
    mount -t tmpfs -o mode=1777 tmpfs $root/$folder
done
mkdir -p "$root$checkout"
mount --bind /run/checkout "$root$checkout"
mount --bind "$shared" "$root$shared"
for folder in proc sys dev run; do
    mount --rbind /$folder $root/$folder
done
mkdir /run/old

# There may be no /lib/modules to put Debian's modules into, so they are loaded from where they are.
cat >/run/modprobe <<END
#!/bin/sh
exec /sbin/modprobe --dirname=$kernel "\$@"
END
chmod 755 /run/modprobe
echo /run/modprobe >/proc/sys/kernel/modprobe
/run/modprobe tun # nothing asks for it by name

export HOME=/var/tmp PYTHONDONTWRITEBYTECODE=1
cat >/run/serve <<'END'
while read -r script; do
    code=0
    bash -c "$(base64 --decode <<<"$script")" </dev/null >"$1/out" 2>"$1/err" || code=$?
    echo "ended $code"
done
END
cd $root
# shellcheck disable=SC2016 # the inner shell expands these
exec unshare --mount --propagation private bash -c '
    pivot_root . run/old
    cd "$2"
    echo ready
    exec bash /run/serve "$1"' - "$shared" "$checkout"
