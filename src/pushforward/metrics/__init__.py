"""How good are draws: distances to a target or to other draws, each against its floor."""

from pushforward.lazy import attach

__getattr__, __dir__ = attach(__name__)
