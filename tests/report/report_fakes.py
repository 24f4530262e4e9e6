"""Records and a header such as a study leaves, without one having been run."""

from reproduce.records import Header, Record

SIX = ("gaussian", "mog2", "rosenbrock", "donut", "funnel", "squiggle")
METHODS = (
    *("default", "kl", "fisher", "smc", "mixture", "default-thin", "exact"),
    *("ld", "hmc", "svgd", "flow", "ksd-ns", "steingan"),
)
SECONDS = {
    "kl": 0.0003,
    "default": 0.0004,
    "flow": 0.003,
    "ld": 0.05,
    "hmc": 0.5,
    "svgd": 6.0,
    "default-thin": 0.1,
}


def header(study="two_d"):
    return Header(study, "cpu", 0, f"pushforward study {study} --preset cpu", {"jax": "0.10.2"}, 2)


def plane_records():
    """Records such as the study leaves, with round figures that a test can recompute."""
    found = []

    def add(method, target, metric, value, floor=None, spread=0.02, seed=0, repeats=20):
        found.append(Record("two_d", "cpu", method, target, metric, value, spread, 500, repeats, seed, floor))

    for target in SIX:
        for method in METHODS:
            for seed in range(3 if method in ("default", "kl", "fisher") else 1):
                ratio = 1.5 if (method, target) == ("fisher", "donut") else 1.0 + 0.01 * seed
                add(method, target, "ksd_imq_v", 0.1 * ratio, 0.1, seed=seed)
                add(method, target, "sliced_w2", 0.02 * (3 if method == "kl" else 1), 0.02, 0.001, seed)
                add(method, target, "ksd_imq_u", 1e-5, 0.0, 1e-4, seed)
                add(method, target, "mmd", 1e-5, 0.0, 1e-4, seed)
        add("kl", target, "ksd_imq_v_best", 0.09, 0.09)
        add("default-sobol", target, "rmse_mean", 0.001, 0.016, 0.0005)
        add("default-sobol", target, "rmse_second", 0.004, 0.016, 0.002)
        for method, seconds in SECONDS.items():
            add(method, target, "seconds_per_1k_draws", seconds)
            add(method, target, "ratio_to_kl", seconds / SECONDS["kl"], spread=None)
        add("ld", target, "break_even", float("nan"), spread=None)
        add("kl", target, "train_seconds", 45.0, spread=None)
        add("default", target, "row_seconds", 60.0, spread=None)
    add("ld", "published_funnel", "ksd_imq_v", 0.12, 0.127)
    add("flow", "donut", "ksd_rbf_u", float("nan"))
    return found
