"""Training of a transformer: the computation of its GPUs, and their communication."""
