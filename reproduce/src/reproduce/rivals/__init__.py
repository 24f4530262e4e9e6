"""The methods to beat, each an `Algorithm` made by its module: `langevin.algorithm(target)`.

    from reproduce.rivals import flow, langevin, svgd

Nothing is imported until a module is.
"""
