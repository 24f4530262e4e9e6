"""The methods to beat, each an `Algorithm` made by its module: `langevin.algorithm(target)`.

    from pushforward.baselines import flow, hmc, langevin, mala, nuts, svgd

The modules stand on BlackJAX and FlowJAX, which come with `pushforward[baselines]`; nothing is
imported until one of them is.
"""
