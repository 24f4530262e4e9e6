# The smallest network that is one, and no teacher: what is tested here is the command, not the method.
SIZES = ("width=8", "depth=1", "score_width=8", "score_depth=1", "batch_size=16", "score_batch_size=16")
TINY = ["--method", "kl", "--steps", "4", "--set", "frame=identity"]
TINY += [word for size in SIZES for word in ("--set", size)]
