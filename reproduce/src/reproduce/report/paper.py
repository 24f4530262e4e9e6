"""The paper's own figures for the plane (its Tables 1 and 2), to stand beside ours."""

TARGETS = ("gaussian", "mog2", "rosenbrock", "donut", "funnel", "squiggle")

KSD: dict[str, tuple[tuple[float, float], ...]] = {
    "svgd": ((.013, .001), (.044, .006), (.053, .002), (.057, .004), (.052, .001), (.024, .002)),
    "ld": ((.107, .025), (.099, .008), (.152, .030), (.107, .020), (.116, .029), (.139, .030)),
    "hmc": ((.094, .020), (.106, .020), (.134, .034), (.113, .020), (.135, .010), (.135, .033)),
    "flow": ((.102, .028), (.158, .019), (.150, .026), (.239, .013), (.269, .019), (.130, .026)),
    "ksd-ns": ((.206, .043), (1.129, .197), (1.531, .058), (.341, .039), (.396, .221), (.462, .065)),
    "steingan": ((.091, .013), (.131, .011), (.121, .022), (.104, .013), (.129, .020), (.124, .018)),
    "fisher": ((.095, .016), (.118, .013), (.157, .030), (.179, .028), (7.837, 1.614), (.202, .037)),
    "kl": ((.099, .015), (.104, .015), (.123, .021), (.109, .015), (.115, .012), (.118, .024)),
}  # fmt: skip
"""Table 1: mean and standard deviation, per target; the lowest of 50 checkpoints for trained methods."""

SECONDS: dict[str, tuple[float | None, ...]] = {
    "svgd": (26.42, 26.79, 26.11, 26.36, 26.06, None),
    "ld": (0.1035, 0.2168, 0.1284, 0.1100, 0.1339, None),
    "hmc": (0.3438, 1.7125, 0.6725, 0.3854, 0.6837, None),
    "kl": (0.0014, 0.0014, 0.0014, 0.0014, 0.0014, None),
}
"""Table 2: seconds per 1,000 draws, its peers uncompiled; it has no Squiggle."""


def ksd(method: str, target: str) -> tuple[float, float] | None:
    """Return the paper's KSD and its spread. Its Funnel is the one with the wrong score."""
    target = "funnel" if target == "published_funnel" else target
    return KSD[method][TARGETS.index(target)] if method in KSD else None


def seconds(method: str, target: str) -> float | None:
    """Return the paper's seconds per 1,000 draws."""
    return SECONDS[method][TARGETS.index(target)] if method in SECONDS else None
