"""The demo, the book and the tests use no settings that a user has made for other programs."""

import os

import pytest

from attncourse.grading.isolation import isolate, isolated_environment

VARIABLES_OF_THE_USER = [
    "ATTNCOURSE_DB",
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_CONFIG_PATH",
    "JUPYTER_PATH",
    "JUPYTERHUB_API_TOKEN",
    "JPY_SESSION_NAME",
    "NBGRADER_VALIDATING",
    "DASK_SCHEDULER_ADDRESS",
    "PGHOST",
    "PGSERVICE",
    "MPLBACKEND",
    "PYTHONSTARTUP",
]
VARIABLES_OF_THE_MACHINE = [
    "PATH",
    "HOME",
    "ATTNCOURSE_CACHE",
    "XDG_CACHE_HOME",
    "PIP_INDEX_URL",
    "PAGER",
]


@pytest.mark.parametrize("name", VARIABLES_OF_THE_USER)
def test_a_users_variable_is_removed(name):
    environment = {name: "/somebody/s", "PATH": "/bin"}
    isolate(environment)
    assert environment == {"PATH": "/bin", "JUPYTER_NO_CONFIG": "1", "MATPLOTLIBRC": os.devnull}


def test_the_machines_variables_stay():
    environment = dict.fromkeys(VARIABLES_OF_THE_MACHINE, "/there")
    isolate(environment)
    assert set(VARIABLES_OF_THE_MACHINE) <= environment.keys()


def test_isolation_ends_with_its_block(monkeypatch):
    monkeypatch.setenv("ATTNCOURSE_DB", "sqlite:///real.db")
    with isolated_environment():
        assert "ATTNCOURSE_DB" not in os.environ
    assert os.environ["ATTNCOURSE_DB"] == "sqlite:///real.db"


def test_figures_use_matplotlibs_own_defaults():
    import matplotlib

    assert matplotlib.matplotlib_fname() == os.devnull
    assert matplotlib.rcParams["lines.linewidth"] == 1.5


def test_these_tests_are_isolated():
    assert not {"ATTNCOURSE_DB", "JUPYTER_CONFIG_DIR", "PGHOST"} & os.environ.keys()
    private = os.environ["IPYTHONDIR"]
    assert private == os.environ["JUPYTER_DATA_DIR"]
    assert "attncourse-ipython-" in private
