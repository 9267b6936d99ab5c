"""Models that load the new checkpoints of a training run without a restart."""
