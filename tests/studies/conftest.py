import pytest

from reproduce.studies import two_d

MAIN = (
    *("default", "kl", "smc", "mixture", "default-thin", "default-sobol"),
    *("exact", "ld", "svgd", "flow", "speed"),
)


@pytest.fixture(scope="session")
def smoke_folder(tmp_path_factory):
    """The smoke preset, run once."""
    folder = tmp_path_factory.mktemp("results")
    settings = two_d.PRESETS["smoke"].replace(methods=MAIN)
    two_d.run(settings, folder, command="pushforward study two-d --preset smoke")
    return folder
