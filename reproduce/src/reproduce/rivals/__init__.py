"""The methods to beat, each an `Algorithm` made by its module: `langevin.algorithm(target)`.

    from reproduce.rivals import flow, langevin, svgd

Chains that the library needs itself are in `pushforward.mcmc`. Nothing is imported until a module is.
"""
