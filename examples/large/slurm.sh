#!/bin/bash
# A fabric over the nodes of a cluster, as a Slurm job:
#
#     sbatch --nodes 4 examples/large/slurm.sh examples/large/fat-tree-8192.emu.yml --out results
#
# Every node needs the same version of emu, mpi4py and Open MPI (Debian: python3-mpi4py,
# openmpi-bin). Only the first node reads the spec and writes the results.
#SBATCH --job-name=emu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --exclusive
#SBATCH --time=04:00:00

set -eu

# One rank on each node, with a thread on each of its cores. mpirun learns the nodes from Slurm.
exec mpirun -n "$SLURM_NTASKS" --map-by "ppr:1:node:pe=$SLURM_CPUS_PER_TASK" \
    emu run "$@" --clock virtual --threads "$SLURM_CPUS_PER_TASK"
