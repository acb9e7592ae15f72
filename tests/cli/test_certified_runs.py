"""``train --tol``: certified to the same bytes however a file is cut and a run is stopped; refused where rows come once."""

import json
import re
import shutil

import numpy as np
import pytest
from command import run
from seldom import seldom

from onlinear import OnlineClassifier, load, streams
from onlinear.cli import checkpoints, runs
from onlinear.cli.settings import Settings
from onlinear.training.events import Certified, Interrupted, Written

OPEN = streams.open


def write(path, classes=2, rows=500):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 12)) * (rng.random((rows, 12)) < 0.4)
    z = X @ np.linspace(-1, 1, 12) + 0.5 * rng.standard_normal(rows)
    y = np.where(z > 0.0, 1, -1) if classes == 2 else np.digitize(z, [-0.5, 0.5])
    cells = ["".join(f" {j + 1}:{x:.17g}" for j, x in enumerate(row) if x) for row in X]
    path.write_text("".join(f"{label}{own}\n" for label, own in zip(y, cells, strict=True)))
    return X, y


class Kept(checkpoints.Checkpoints):
    """Keeps every checkpoint that is written."""

    def write(self, training):
        written = super().write(training)
        shutil.copy(self.path, f"{self.path}.{training.rows}")
        return written


@pytest.mark.parametrize(
    ("classes", "options"),
    [
        seldom(2, {"penalty": "l1=1e-2", "tol": 1e-6, "passes": 2, "shuffle_rows": 90}),
        (3, {"penalty": "elastic-net,l1=1e-3,l2=1e-3", "solver": "prox-newton", "scan": True, "class_weight": "balanced"}),
        seldom(3, {"penalty": "l1=1e-2", "loss": "logistic", "tol": 1e-3, "scan": True}),
    ],
)
def test_a_run_goes_on_from_any_checkpoint_to_the_same_bytes(classes, options, tmp_path, monkeypatch):
    write(tmp_path / "rows.svm", classes)
    settings = Settings((str(tmp_path / "rows.svm"),), {}, **options)
    plain = runs.start(settings, None)
    wanted = list(plain)
    plain.model.save(tmp_path / "plain")
    assert any(isinstance(event, Certified) for event in wanted)
    monkeypatch.setattr(streams, "open", lambda paths, **o: OPEN(paths, **o, block_bytes=3000))
    whole = runs.start(settings, Kept(str(tmp_path / "c"), 200, None, {}))
    assert [event for event in whole if not isinstance(event, Written)] == wanted
    whole.model.save(tmp_path / "whole")
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "plain").read_bytes()
    found = sorted(tmp_path.glob("c.*"), key=lambda path: int(path.suffix[1:]))
    assert int(found[-1].suffix[1:]) == plain.rows
    for path in (found[0], *found[-3:]):
        resumed = runs.resume(checkpoints.read(str(path)), None)
        rest = [event for event in resumed if not isinstance(event, Written)]
        resumed.model.save(tmp_path / "resumed")
        assert rest == wanted[len(wanted) - len(rest) :]
        assert (tmp_path / "resumed").read_bytes() == (tmp_path / "plain").read_bytes(), path.name


def test_a_run_that_is_stopped_between_the_passes_goes_on(tmp_path):
    write(tmp_path / "rows.svm")
    settings = Settings((str(tmp_path / "rows.svm"),), {}, penalty="l1=1e-2", tol=1e-5)
    plain = runs.start(settings, None)
    list(plain)
    plain.model.save(tmp_path / "plain")
    stopped = runs.start(settings, checkpoints.Checkpoints(str(tmp_path / "c"), None, None, {}))
    stopped.watch = lambda: setattr(stopped, "stopping", stopped.reading is not None)
    with pytest.raises(Interrupted):
        list(stopped)
    stopped.checkpoint()
    resumed = runs.resume(checkpoints.read(str(tmp_path / "c")), None)
    list(resumed)
    resumed.model.save(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "plain").read_bytes()


def test_the_table_the_model_and_the_estimator_agree(tmp_path):
    X, y = write(tmp_path / "rows.svm")
    model = tmp_path / "m.onlinear"
    said = run("train", tmp_path / "rows.svm", "--penalty", "l1=1e-2", "--tol", "1e-6", "-m", model)
    assert "certified gap" in said
    assert "certified: the objective is at most" in said
    found = load(model)
    alone = OnlineClassifier(penalty="l1=1e-2", tol=1e-6).fit(X, y)
    streamed = OnlineClassifier(penalty="l1=1e-2", tol=1e-6).fit(streams.open(tmp_path / "rows.svm"))
    np.testing.assert_array_equal(found.coef_, streamed.coef_)
    np.testing.assert_allclose(alone.coef_, found.coef_, atol=1e-4)
    assert found.converged_
    assert found.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    assert found.duality_gap(X, y) <= 1e-6
    last = json.loads(run("train", tmp_path / "rows.svm", "--penalty", "l1=1e-2", "--tol", "1e-6", "--json").splitlines()[-1])
    assert last["certified"]["converged"]
    assert last["certified"]["gap"] == found.dual_gap_
    assert max(len(line) for line in said.splitlines() if str(model) not in line) <= 80
    shown = run("inspect", model)  # no row was scored before it was learned
    assert re.search(rf"\nrows +{last['rows']:,} in {last['passes']} passes\nloss +-\n", shown)


def test_it_says_how_far_it_came(tmp_path):
    write(tmp_path / "rows.svm")
    said = run("train", tmp_path / "rows.svm", "--penalty", "l1=1e-2", "--tol", "1e-9", "--max-passes", "3")
    assert "tol=1e-09 was not reached: after 3 passes" in said.replace("\n  ", " ").replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-", "--tol", "1e-4"), "cannot be read twice"),
        (("FILE", "--tol", "1e-4", "--holdout", "0.1"), "exclude each other"),
        (("FILE", "--tol", "1e-4", "--loss", "hinge"), "needs a loss with a second derivative"),
        (("FILE", "--solver", "sdca"), "keeps a number for each row"),
        (("FILE", "--tol", "1e-4", "--max-passes", "1"), "leaves no pass to certify"),
        (("FILE", "--tol", "1e-4", "--scale", "standard"), "which makes rows dense"),
        (("FILE", "--tol", "0"), "tol"),
        (("FILE", "--tol", "1e-4", "--penalty", "none"), "without a penalty a duality gap says nothing"),
    ],
)
def test_refusals_come_before_the_first_row(arguments, says, tmp_path):
    write(tmp_path / "rows.svm")
    given = [str(tmp_path / "rows.svm") if word == "FILE" else word for word in arguments]
    penalty = () if "--penalty" in arguments else ("--penalty", "l1=1e-2")
    code = 1 if "-" in given else 2
    assert says in run("train", *given, *penalty, "--model", tmp_path / "m", code=code)
    assert not (tmp_path / "m").exists()
