"""The public documents that are sources of figures in specs and counters, each named once."""

from __future__ import annotations

BINOMIAL = "normal approximation of the binomial distribution"
CISCO_BLUEPRINT = "Cisco Data Center Networking Blueprint for AI/ML Applications (NX-OS)"
CONWEAVE = "simulation code of ConWeave's authors, github.com/conweave-project/conweave-ns3, run.py"
DCQCN = (
    "Zhu et al., Congestion Control for Large-Scale RDMA Deployments (DCQCN), SIGCOMM 2015, "
    "section 5"
)
DCQCN_NS3 = "simulation code of DCQCN's authors, github.com/bobzhuyb/ns3-rdma"
DCQCN_STABILITY = "Zhu et al., ECN or Delay: Lessons Learnt from DCQCN and TIMELY, CoNEXT 2016"
DOT1Q = "IEEE 802.1Q, clause 6.9 (support of the ISS)"
DOT1QBB = "IEEE 802.1Qbb, priority-based flow control; in IEEE 802.1Q clause 36"
DOT3 = "IEEE 802.3, annexes 31B and 31D"
ETHTOOL = "Linux kernel documentation, mlx5 driver: ethtool counters (counters.rst)"
FIO = "fio's manual page, fio(1)"
FLOWLET = "Kandula et al., Dynamic Load Balancing Without Packet Reordering, CCR 2007"
FRR_BFD = "FRR's user guide, BFD, and FRR 8.4, bfdd/bfd.h"
FRR_BGP = "FRR's user guide, BGP, and FRR 8.4, bgpd/bgp_vty.c"
GLU = "Shazeer, GLU Variants Improve Transformer (2020)"
GQA = "Ainslie et al., GQA, EMNLP 2023"
H100 = "NVIDIA H100 Tensor Core GPU data sheet"
HPCC = "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019"
HPCC_NS3 = (
    "simulation code of HPCC's authors, github.com/alibaba-edu/High-Precision-Congestion-Control, "
    "run.py"
)
HW_COUNTERS = (
    "Linux, /sys/class/infiniband/DEVICE/ports/N/hw_counters; NVIDIA, Understanding mlx5 Linux "
    "Counters and Status Parameters"
)
IBTA = "InfiniBand Architecture Specification, volume 1, chapter 9 (transport layer)"
IBTA_CC = "InfiniBand Architecture Specification, volume 1, annex A10 (congestion control)"
IBTA_LINK = "InfiniBand Architecture Specification, volume 1, chapter 7 (link layer)"
IBTA_PMA = (
    "InfiniBand Architecture Specification, volume 1, chapter 16.1 (PortCounters and their "
    "extended and VL attributes)"
)
IBTA_ROCE = "InfiniBand Architecture Specification, volume 1, annex A17 (RoCEv2)"
INTERLEAVED_PIPELINE = "Narayanan et al., Efficient Large-Scale Language Model Training, SC'21, 2.2"
MLX5 = "Linux, mlx5 driver: max_qp_rd_atom as ibv_devinfo -v reports it"
MLNX_OFED_CC = (
    "Mellanox OFED for Linux user manual, revision 2.3, Congestion Control Manager options file"
)
MLXCONFIG = "NVIDIA mlxconfig, class ROCE_CC_ECN: help texts and the values of a ConnectX-6 Dx"
MODELS = "the publishers' configuration files at Hugging Face, and papers"
NCCL = "NCCL, public source and documentation (github.com/NVIDIA/nccl)"
NVLINK = "NVIDIA, fourth-generation NVLink: 900 GB/s for each GPU, both ways together"
NVME = "NVM Express over Fabrics specification, RDMA transport"
NVMET = "Linux, drivers/nvme/target/rdma.c"
OPENSM = "OpenSM 3.3.23: manual page opensm(8), and its options file (opensm -c)"
PCIE = "PCI Express Base Specification, revision 5.0: 32 GT/s, 128b/130b"
RDMA_CORE = "rdma-core, libibverbs/examples, and perftest: timeout 14 at the move to RTS"
RFC2474 = "RFC 2474, section 4.2.2 (class selector codepoints)"
RFC2992 = "RFC 2992 (hash-based choice among equal-cost next hops)"
RFC6928 = "RFC 6928 (TCP's initial window)"
RFC7938 = "RFC 7938 (BGP in large-scale data centers)"
RFC8257 = "RFC 8257 (DCTCP)"
RING_ATTENTION = "Liu et al., Ring Attention with Blockwise Transformers (2023)"
ROCE_DSCP = (
    "NVIDIA, Cumulus Linux and Onyx user manuals, RoCE: DSCP 26 on priority 3, CNPs with DSCP 48 "
    "on priority 6"
)
SAI = "SAI, saiport.h; SONiC, `show pfc counters`"
SEQUENCE_PARALLEL = (
    "Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models (2022), 4.2"
)
SONIC_BUFFERS = "SONiC, sonic-buildimage: buffers_config.j2"
SONIC_PG = "SONiC, sonic-buildimage: pg_profile_lookup.ini of each device"
SONIC_PFCWD = "SONiC, sonic-utilities: pfcwd/main.py; sonic-swss: pfcactionhandler.cpp"
SONIC_QOS = "SONiC, sonic-buildimage: qos_config.j2 and buffers_config.j2"
SWIFT = (
    "Kumar et al., Swift: Delay is Simple and Effective for Congestion Control in the Datacenter, "
    "SIGCOMM 2020; htsim, swift_new.cpp"
)
SWITCH_LATENCY = (
    "latencies that vendors advertise: Mellanox SX6036, SB7800 and QM8700, Arista 7050SX and "
    "7050X3; Linley newsletter of 31 July 2017 on Spectrum-2; resellers of the QM9700"
)
SWITCH_TRANSFORMER = "Fedus et al., Switch Transformers, JMLR 2022"
ZERO = "Rajbhandari et al., ZeRO, SC'20, sections 5 and 7; PyTorch documentation, FSDP"
