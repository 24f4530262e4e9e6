import json

import jax
import jaxtyping
import pytest
from typer.testing import CliRunner

from pushforward.cli import app
from pushforward.frame import Frame
from pushforward.latents import Normal
from pushforward.networks import mlp
from pushforward.sampler import Sampler


@pytest.fixture(scope="session")
def invoke():
    """`invoke("sample", ...)`: run a command in this process."""
    runner = CliRunner()
    return lambda *words: runner.invoke(app, [str(word) for word in words])


@pytest.fixture(scope="session")
def sampler():
    """A small sampler that nobody trained."""
    network = mlp(jax.random.key(4), 2, 2, width=8, depth=1)
    return Sampler(Normal(2), network, Frame.identity(2), json.dumps({"target": "none"}))


@pytest.fixture(scope="session")
def sampler_file(sampler, tmp_path_factory):
    """The same, saved: copy it before breaking it."""
    path = tmp_path_factory.mktemp("sampler") / "sampler.pf"
    sampler.save(path)
    return path


@pytest.fixture
def unhooked():
    """No annotations enforced, as in a user's session: our own messages are what is under test."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
