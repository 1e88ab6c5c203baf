"""Training a transformer: what its GPUs compute, and what they send each other for it."""
