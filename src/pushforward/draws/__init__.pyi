from pushforward.draws.files import load_draws as load_draws
from pushforward.draws.record import Draws as Draws
from pushforward.draws.refining import Refinement as Refinement
from pushforward.draws.refining import refine as refine
from pushforward.draws.thinning import thin as thin
from pushforward.draws.thinning import thin_indices as thin_indices
