from pushforward.draws.files import load_draws as load_draws
from pushforward.draws.record import Draws as Draws
from pushforward.draws.refine import Refinement as Refinement
from pushforward.draws.refine import refine as refine
from pushforward.draws.thin import thin as thin
from pushforward.draws.thin import thin_indices as thin_indices
