"""The lower bounds that pyproject.toml declares are those that bounds.py installs; every command's help fits 80 columns."""

import re
import tomllib

import bounds
import pytest
import typer
from typer.testing import CliRunner

from onlinear.cli import app

PROJECT = tomllib.loads((bounds.ROOT / "pyproject.toml").read_text())["project"]


def test_the_script_installs_every_declared_lower_bound():
    extras = PROJECT["optional-dependencies"]
    declared = {*PROJECT["dependencies"], *extras["papers"], *extras["dask"], *extras["test"]} - {"onlinear[papers,dask]"}
    pins = {bounds.lowest(item) for item in bounds.requirements()}
    assert pins == {re.sub(r",.*", "", item).replace(">=", "==") for item in declared}


@pytest.mark.parametrize("wrong", ["numpy", "numpy<3", "numpy==2.0", "numpy>=2.0,!=2.1", "numpy>=2;python_version>'3'"])
def test_a_requirement_without_a_plain_lower_bound_is_refused(wrong):
    with pytest.raises(ValueError, match="must be written name>=version"):
        bounds.lowest(wrong)


def test_every_extra_has_what_it_is_for():
    assert set(PROJECT["optional-dependencies"]) == {"papers", "report", "bench", "river", "dask", "docs", "test"}


def test_the_script_tries_every_command():
    assert set(bounds.COMMANDS) == set(typer.main.get_command(app).commands)


@pytest.mark.parametrize("command", ["", *bounds.COMMANDS])
def test_help_fits_80_columns(command):
    result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert "Usage:" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
