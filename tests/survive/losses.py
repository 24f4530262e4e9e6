"""A small fit that writes its losses down: run with other numbers of devices or processes, they are the same.

python losses.py OUT.json METHOD STEPS [CHECKPOINT] [COORDINATOR NUM_PROCESSES PROCESS_ID]
"""

import itertools
import json
import os
import signal
import sys
from pathlib import Path

import jax

import pushforward as pf

SIZES = {"width": 4, "depth": 1, "score_width": 4, "score_depth": 1, "batch_size": 64, "score_batch_size": 64}


def die_at(meeting: int) -> None:
    """Let this process be killed, as by a machine that fails."""
    meet, count = pf.distributed.agree, itertools.count(1)

    def fatal(numbers):
        if next(count) == meeting:
            os.kill(os.getpid(), signal.SIGKILL)
        return meet(numbers)

    pf.distributed.agree = fatal


def main() -> None:
    out, steps, checkpoint, *others = sys.argv[1:]
    if others:
        pf.distributed.initialize(others[0], int(others[1]), int(others[2]))
        if others[3:]:
            die_at(int(others[3]))
    settings = pf.preset("kl", frame="identity", num_steps=int(steps), **SIZES)
    done = pf.fit(
        jax.random.key(0), pf.targets.rosenbrock(), settings=settings, progress=False, throw=False,
        checkpoint=checkpoint or None, checkpoint_every=0.0,
    )  # fmt: skip
    draws = done.sampler.sample(jax.random.key(1), 100)
    found = {
        "devices": jax.device_count(), "processes": jax.process_count(), "outcome": done.outcome.name,
        "objective": [row["objective"] for row in done.history], "mean": [float(v) for v in draws.mean(0)],
    }  # fmt: skip
    Path(out).write_text(json.dumps(found))
    if done.outcome.name == "LOST_PROCESS":
        # With the others it ends as by the command line; a script says what it likes.
        sys.exit(done.outcome.value)


main()
