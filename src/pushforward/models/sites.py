"""What a run of a NumPyro model says of itself, site by site."""

from typing import Any

import numpy as np

from pushforward.models.extras import listed

Trace = dict[str, dict[str, Any]]


def run(model: Any, args: tuple, kwargs: dict, seed: int) -> Trace:
    """Run the model once, its latent sites near the centre of their supports, and return its trace."""
    import jax
    from numpyro import handlers
    from numpyro.infer import init_to_uniform

    key = jax.random.key(seed)
    start = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_uniform(radius=1))
    return dict(handlers.trace(start).get_trace(*args, **kwargs))


def latent_sites(trace: Trace, model: str) -> Trace:
    """Return the sites to sample; complain about those that cannot be."""
    unobserved = {k: s for k, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
    unusable = {
        "site(s) {} of {} are discrete and not observed; a pushforward sampler needs a density with a "
        "gradient. Sum them out (a mixture: `numpyro.distributions.MixtureSameFamily`, or "
        "`jax.scipy.special.logsumexp` with `numpyro.factor`), or pass their data.": [
            k for k, s in unobserved.items() if _is_discrete(s)
        ],
        "site(s) {} of {} are drawn from `Delta`, hence have no density. Write "
        "`numpyro.deterministic(name, value)` for what is computed.": [
            k for k, s in unobserved.items() if _is_made_of(s, "Delta")
        ],
        "site(s) {} of {} are `numpyro.param`s, which have no prior and are meant for an optimiser. Give "
        "them one with `numpyro.sample`, or pass them as arguments.": [
            k for k, s in trace.items() if s["type"] in ("param", "mutable")
        ],
        "the plate(s) {} of {} see a random part of the data, so the log density changes from call to call. "
        "Leave out `subsample_size`.": [k for k, s in trace.items() if _is_partial_plate(s)],
    }
    for words, names in unusable.items():
        if names:
            raise ValueError(f"`model`: {words.format(listed(names), repr(model))}")
    if not unobserved:
        raise ValueError(
            f"`model`: {model!r} has no latent site, hence nothing to sample. Its sites are "
            f"{listed(trace) or 'none'}; unknowns are `numpyro.sample(name, distribution)` without `obs`."
        )
    return unobserved


def check_same(first: Trace, second: Trace, model: str) -> None:
    """Refuse a model whose sites or their shapes change from run to run."""

    def shapes(trace: Trace) -> dict[str, Any]:
        return {key: np.shape(site["value"]) for key, site in trace.items() if site["type"] == "sample"}

    before, after = shapes(first), shapes(second)
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    if changed:
        raise ValueError(
            f"`model`: site(s) {listed(changed)} of {model!r} come and go, or change their shape, "
            "from one run to the next. The number of parameters must be fixed."
        )


def axes(site: dict[str, Any]) -> tuple[str, ...]:
    """Return names for a site's axes: those of its plates, and NumPy-like ones for the rest."""
    shape, event = np.shape(site["value"]), site["fn"].event_dim
    names = [f"{site['name']}_dim_{axis}" for axis in range(len(shape))]
    for frame in site["cond_indep_stack"]:
        place = len(shape) - event + frame.dim
        if 0 <= place < len(shape) and shape[place] == frame.size:
            names[place] = frame.name
    return tuple(names)


def is_masked(site: dict[str, Any]) -> bool:
    """Whether some of a site's data are switched off, so that holes in them may be meant."""
    return _is_made_of(site, "MaskedDistribution")


def shapes_that_differ(site: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Return the shapes of a likelihood and of its data, if the two do not go together."""
    wanted, got = tuple(site["fn"].shape()), np.shape(site["value"])
    try:
        np.broadcast_shapes(wanted, got)
    except ValueError:
        return wanted, got
    return None


def outside_support(site: dict[str, Any], again: dict[str, Any]) -> int:
    """Count the data that a likelihood rules out whatever its parameters; a moving support is let be."""
    try:
        inside, too = (np.asarray(s["fn"].support.check(s["value"])) for s in (site, again))
    except (NotImplementedError, TypeError, ValueError, AttributeError):
        return 0
    return int(np.sum(~inside & ~too))


def log_density(model: Any, args: tuple, kwargs: dict, values: dict[str, Any]) -> Any:
    """Return the log joint density of the constrained `values` and the data."""
    from numpyro import handlers
    from numpyro.distributions.distribution import validation_enabled
    from numpyro.infer.util import log_density as joint

    # Data were looked at when the model was read; to look again, in each program, is one more program a look.
    with validation_enabled(is_validate=False):
        # A key, for models that ask for one beside their sites: fixed, so that the density is a function.
        return joint(handlers.seed(model, 0), args, kwargs, values)[0]


def derived(
    model: Any, args: tuple, kwargs: dict, values: dict[str, Any], names: list[str]
) -> dict[str, Any]:
    """Return the deterministic sites at constrained `values`."""
    from numpyro import handlers

    run = handlers.trace(handlers.substitute(handlers.seed(model, 0), data=values))
    trace = run.get_trace(*args, **kwargs)
    return {name: trace[name]["value"] for name in names}


def _is_discrete(site: dict[str, Any]) -> bool:
    support = site["fn"].support
    return bool(getattr(support, "is_discrete", False)) or np.asarray(site["value"]).dtype.kind in "iub"


def _is_made_of(site: dict[str, Any], kind: str) -> bool:
    """Whether a distribution of that name is among those that a site's is wrapped around."""
    fn = site["fn"]
    while fn is not None:
        if type(fn).__name__ == kind:
            return True
        fn = getattr(fn, "base_dist", None)
    return False


def _is_partial_plate(site: dict[str, Any]) -> bool:
    if site["type"] != "plate":
        return False
    size, part = site["args"]
    return part is not None and part != size
