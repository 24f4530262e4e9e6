"""What the first of many processes hands over to the others, through files."""

import jax

from pushforward import distributed
from pushforward.recipe.state import State
from pushforward.run.checkpoint import Checkpoint
from pushforward.run.checkpoint_files import Found
from pushforward.training.loop import Position


def recalled_position(memory: Checkpoint, begin: Position, num_steps: int) -> tuple[Position, int] | None:
    """Return where an earlier run came to; of many processes, all begin where the chief does."""
    chief = distributed.is_chief()
    found = memory.restore(begin, num_steps) if chief else None
    if jax.process_count() == 1:
        return found
    if chief:
        memory.keep(begin if found is None else found[0], now=True)
    distributed.hand_over("state", memory.newest() if chief else memory.first)
    return memory.restore(begin, num_steps)


def shared_state(memory: Checkpoint | None, found: Found, state: State) -> State:
    """Return the state that the chief has found, in every process."""
    if jax.process_count() == 1 or memory is None:
        return state
    if distributed.is_chief():
        memory.keep_found(found)
    distributed.hand_over("found", memory.found_file)
    if distributed.is_chief():
        return state
    handed = memory.found(state.target)
    assert handed is not None
    return handed.into(state)
