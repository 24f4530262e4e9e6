"""From a target to a sampler: the driver of the stages, its clock and its checkpoints."""
