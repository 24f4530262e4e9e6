"""What to say when a package of the `mcmc` extra is not installed."""


def missing(package: str) -> ImportError:
    """Return the error that names the package and the way to get it."""
    return ImportError(
        f"This chain stands on `{package}`, which is not installed. "
        "Install it with `pip install 'pushforward[mcmc]'`."
    )
