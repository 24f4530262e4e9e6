"""What moves the sampler; none of these knows how the score was fitted."""

from pushforward.lazy import attach

__getattr__, __dir__ = attach(__name__)
