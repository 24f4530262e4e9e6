"""Markov chains, each an `Algorithm` made by its module: `nuts.algorithm(target)`.

    from pushforward.mcmc import hmc, mala, nuts, tempering

`hmc`, `mala` and `nuts` stand on BlackJAX, which comes with `pushforward[mcmc]`; nothing is imported until
one of them is.
"""
