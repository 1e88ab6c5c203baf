"""Language models: the sizes of a transformer, and those that publishers state."""
