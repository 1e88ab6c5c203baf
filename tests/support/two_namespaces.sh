#!/bin/sh
# Runs a command by mpirun on two "machines": network namespaces with an address and a host name
# each, which a veth pair connects. The namespaces end with the command.
#
#     two_namespaces.sh FOLDER COMMAND...       FOLDER: for a file of its own
set -e
if [ -z "$EMU_FIRST_MACHINE" ]; then
    EMU_FIRST_MACHINE=1 exec unshare --mount --net --uts "$0" "$@"
fi
folder=$1
shift
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip netns add second
ip link add cable1 type veth peer name cable2 netns second
hostname first
ip link set lo up
ip addr add 10.77.0.1/24 dev cable1
ip link set cable1 up
ip -n second link set lo up
ip -n second addr add 10.77.0.2/24 dev cable2
ip -n second link set cable2 up
# In place of ssh: $1 is the address of the machine.
cat > "$folder/agent" <<'AGENT'
#!/bin/sh
shift
exec ip netns exec second unshare --uts sh -c 'hostname second; exec sh -c "$0"' "$*"
AGENT
chmod +x "$folder/agent"
exec mpirun --allow-run-as-root -H 10.77.0.1:1,10.77.0.2:1 -n 2 \
    --mca plm_rsh_agent "$folder/agent" --mca oob_tcp_if_include 10.77.0.0/24 \
    --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include 10.77.0.0/24 "$@"
