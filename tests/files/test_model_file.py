"""Model files: the same bytes for the same training, and one clear error for every file that is none."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tracemalloc
import warnings
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save, save_file
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import InconsistentVersionWarning

from onlinear import DivergenceError, Learner, ModelFileError, OnlineClassifier, load
from onlinear.files import model_file
from onlinear.models.predictor import Final
from onlinear.solvers import SOLVERS
from onlinear.solvers.core import moments
from onlinear.streams import labels

RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 5))
Y = np.where(X @ np.arange(5) > 0.0, 1.0, -1.0)


def trained(rows=slice(None)):
    return Learner("comid,eta=0.5", "hinge", "l1,l1=1e-3", average="weighted-t1").learn(X[rows], Y[rows])


@pytest.fixture
def path(tmp_path):
    trained().save(tmp_path / "m")
    return tmp_path / "m"


def test_identical_training_gives_identical_bytes(tmp_path):
    trained().save(tmp_path / "a")
    learner = trained(slice(0, 17))
    learner.save(tmp_path / "half")
    learner.learn(X[17:], Y[17:]).save(tmp_path / "b")
    load(tmp_path / "half").learn(X[17:], Y[17:]).save(tmp_path / "c")
    load(tmp_path / "a").save(tmp_path / "d")
    assert len({(tmp_path / name).read_bytes() for name in "abcd"}) == 1


def test_nothing_about_the_machine_is_in_the_file(path):
    content = path.read_bytes()
    for word in (os.getcwd(), str(path.parent), os.uname().nodename):
        assert word.encode() not in content
    header, _ = model_file.read(path)
    assert sorted(header) == sorted({"version", "digest", "kind", *trained().freeze()[0]})


def test_every_truncation_is_refused(path):
    content = path.read_bytes()
    for keep in (0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:keep])
        with pytest.raises(ModelFileError, match="not an onlinear model file"):
            load(path)


@settings(max_examples=200)
@given(data=st.data())
def test_every_changed_byte_is_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("model") / "m"
    learner = trained()
    learner.save(path)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    try:
        same = load(path)
    except ModelFileError:
        return
    assert same.freeze()[0] == learner.freeze()[0], "a change that is accepted (blanks in the file's header) changes nothing"
    np.testing.assert_array_equal(same.weights(), learner.weights())


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x80\x04K\x01.", b"\xff" * 100, b"{}" * 50], ids=repr)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match="not an onlinear model file"):
        load(tmp_path / "m")


def test_other_safetensors_files_are_refused(tmp_path):
    save_file({"w": np.zeros(3)}, tmp_path / "m")
    with pytest.raises(ModelFileError, match="of another kind"):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    "header",
    ["", "[]", "{}", '{"version":"1"}', '{"version":true}', "[" * 100_000, '{"version":null}'],
    ids=lambda text: text[:16],
)
def test_damaged_headers_are_refused(tmp_path, header):
    save_file({"w": np.zeros(3)}, tmp_path / "m", metadata={model_file.FORMAT: header})
    with pytest.raises(ModelFileError, match="header is damaged"):
        load(tmp_path / "m")


def test_a_newer_file_says_upgrade(tmp_path):
    save_file({"w": np.zeros(3)}, tmp_path / "m", metadata={model_file.FORMAT: json.dumps({"version": model_file.VERSION + 1})})
    with pytest.raises(ModelFileError, match="model file version 2; this release reads up to 1"):
        load(tmp_path / "m")


def rewritten(path, change):
    """The file with its header changed by someone who knows how to make a digest."""
    header, arrays = model_file.read(path)
    del header["digest"]
    change(header, arrays)
    model_file.write(path, header, arrays)


HOSTILE = {
    "no kind": lambda header, arrays: header.pop("kind"),
    "unknown kind": lambda header, arrays: header.update(kind="pickle"),
    "no size": lambda header, arrays: header.pop("size"),
    "huge size": lambda header, arrays: header.update(size=10**15),
    "negative size": lambda header, arrays: header.update(size=-1),
    "size of another type": lambda header, arrays: header.update(size="5"),
    "many outputs": lambda header, arrays: header.update(n_outputs=10**9),
    "no spec": lambda header, arrays: header.pop("spec"),
    "spec of another type": lambda header, arrays: header.update(spec=[1]),
    "an array gone": lambda header, arrays: arrays.pop("losses"),
    "an array of another shape": lambda header, arrays: arrays.update({"0.now": np.zeros(3)}),
    "an array of another type": lambda header, arrays: arrays.update({"losses": np.zeros((1, 2), np.float32)}),
    "steps before the start": lambda header, arrays: arrays["0.now"].__setitem__(0, -5.0),
    "a step that is no number": lambda header, arrays: arrays["0.now"].__setitem__(0, np.nan),
    "a visit after the last step": lambda header, arrays: arrays["0.now"].__setitem__(1, 1e9),
    "a visit long ago": lambda header, arrays: arrays["0.now"].__setitem__(slice(0, 2), (1e12, 0.0)),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_refused_without_harm(path, change):
    rewritten(path, change)
    with pytest.raises(ModelFileError):
        load(path)


def test_a_missing_file_and_a_folder(tmp_path):
    for gone in (tmp_path / "gone", ""):
        with pytest.raises(FileNotFoundError, match=f"no model file at {str(gone)!r}"):
            load(gone)
    with pytest.raises(ModelFileError, match="not a file"):
        load(tmp_path)
    with pytest.raises(TypeError, match="path must be the name of a model file, got BytesIO"):
        load(io.BytesIO(b""))
    with pytest.raises(TypeError, match="path must be the name of a file, got BytesIO"):
        Learner("fiol", "squared").save(io.BytesIO())


def test_a_failed_write_leaves_the_old_file_and_no_other(path, monkeypatch):
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_file.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        trained(slice(0, 9)).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_header_that_no_file_holds_is_told_and_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(model_file, "MOST_BYTES", 99)
    with pytest.raises(OSError, match=r"its header takes [\d,]+ bytes of at most 99: names of columns, .* too long"):
        trained().save(path)
    assert path.read_bytes() == before


def test_size_in_header_is_what_a_text_adds_to_a_file(tmp_path):
    def size(text):
        model_file.write(tmp_path / "m", {"a": text}, {})
        return len((tmp_path / "m").read_bytes())

    for text in ("abcd" * 4, '"\\' * 8, "\u8a9e\n" * 8, "\U0001f600" * 8):
        assert size(text) - size("") == model_file.size_in_header(text) - model_file.size_in_header("")


def test_classes_of_any_length_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(labels, "MOST_PADDED", 1000)
    for classes in (["a", "b" * 70_000], np.array(["a", "b" * 300])):
        model = OnlineClassifier().partial_fit([[1.0]], [classes[0]], classes=classes)
        model.save(tmp_path / "m")
        assert load(tmp_path / "m").classes_.tolist() == list(classes)


def test_the_file_has_the_permissions_of_an_ordinary_one(path):
    ordinary = path.parent / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


class Steep(NamedTuple):
    """A loss from outside the package."""

    slopes: float = 1.0

    def value(self, s, y):
        return self.slopes * max(0.0, -y * s)

    def slope(self, s, y):
        return -self.slopes * y if y * s <= 0.0 else 0.0


def test_a_users_part_must_be_passed_again(tmp_path):
    Learner("comid", Steep(2.0), n_features=5).learn(X, Y).save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"pass the same object: load\(path, loss=\.\.\.\)"):
        load(tmp_path / "m")
    assert load(tmp_path / "m", loss=Steep(np.float64(2.0))).loss == Steep(2.0)
    with pytest.raises(ValueError, match=r"the model's loss is Steep\(slopes=2.0\), got loss=Steep\(slopes=3.0\)"):
        load(tmp_path / "m", loss=Steep(3.0))


def test_objects_of_the_package_come_back_by_themselves(tmp_path):
    from onlinear.averages import Average
    from onlinear.losses import Hinge
    from onlinear.penalties import Box, ElasticNet
    from onlinear.schedules import Power
    from onlinear.solvers.comid import Comid

    solver, loss = Comid(Power(0.5, 1.0, 1.0)), Hinge(2.0, 0.5)
    for more in ((Box(0.1, np.float64(0.2), -np.inf, 1.0), None), (ElasticNet(0.1, np.float64(0.2)), Average(1.0, 1.0))):
        learner = Learner(solver, loss, *more, n_features=5).learn(X, Y)
        learner.save(tmp_path / "m")
        again = load(tmp_path / "m")
        assert (again.solver, again.loss, again.penalty, again.average) == (solver, loss, *more)
        assert np.array_equal(again.learn(X, Y).weights(), learner.learn(X, Y).weights())
    model = OnlineClassifier(Hinge(2.0, 0.5), solver=Comid(), penalty=Box(0.0, 0.1, -1.0, 1.0), average="none").fit(X, Y)
    for final in (False, True):
        model.save(tmp_path / "m", final=final)
        assert np.array_equal(load(tmp_path / "m").decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("role", ["solver", "loss", "penalty", "average"])
def test_a_part_cannot_be_swapped_under_a_state(tmp_path, role):
    Learner("comid", "hinge", "l2,l2=0.5", n_features=5).learn(X, Y).save(tmp_path / "m")
    with pytest.raises(ValueError, match=f"the model's {role} is .*, got {role}='none'"):
        load(tmp_path / "m", **{role: "none"})
    assert load(tmp_path / "m", loss="hinge").t == len(Y)


def test_classes_and_names_of_an_estimator_come_back(tmp_path):
    model = OnlineClassifier(random_state=0).fit(X, np.where(Y > 0, "yes", "no"))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.predict(X).tolist() == model.predict(X).tolist()


# --- every solver ----------------------------------------------------------------------------------------------------

SIGNS = np.where(RNG.random((90, 8)) < 0.5, 0.0, RNG.normal(size=(90, 8)))
LABELS = np.where(SIGNS @ np.arange(-4.0, 4.0) > 0.0, 1.0, -1.0)
PENALTIES = ("l2,l2=0.1", "elastic-net,l1=0.01,l2=0.1", "none")


def any_learner(name, **options):
    """A learner of this solver, with as much of loss, penalty and average as it takes."""
    for settings_ in (f"{name}", f"{name},m=40"):
        for loss, penalty, average in product(("logistic", "squared", "hinge"), PENALTIES, ("weighted-t1", None)):
            try:
                return Learner(settings_, loss, penalty, average, fit_intercept=True, n_features=8, **options)
            except (ValueError, TypeError):
                continue
    raise AssertionError(f"{name} takes nothing of this")


def taught(learner, which):
    if learner.engine.batch:
        return learner.solve(SIGNS, LABELS, 5)
    return learner.learn(SIGNS[which], LABELS[which])


@pytest.mark.parametrize("name", SOLVERS)
def test_saving_and_going_on_is_not_stopping(tmp_path, name):
    whole = any_learner(name)
    for part in (slice(0, 70), slice(70, 90)):
        taught(whole, part)
    whole.save(tmp_path / "whole")
    half = taught(any_learner(name), slice(0, 70))
    half.save(tmp_path / "half")
    again = load(tmp_path / "half")
    again.save(tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == (tmp_path / "half").read_bytes()
    taught(again, slice(70, 90)).save(tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert again.predict(SIGNS).tobytes() == whole.predict(SIGNS).tobytes()
    final = Final.of(whole)
    assert final.predict(SIGNS).tobytes() == whole.predict(SIGNS).tobytes()
    header, arrays = final.freeze()
    assert Final.thaw(json.loads(json.dumps(header)), arrays).predict(SIGNS).tobytes() == whole.predict(SIGNS).tobytes()


def test_identical_training_in_other_processes_gives_identical_bytes(tmp_path):
    code = (
        "import sys, numpy as np, onlinear\n"
        "X = (np.arange(60) % 7 - 3.0).reshape(20, 3); y = np.where(X[:, 0] > 0, 'yes', 'no')\n"
        "onlinear.OnlineClassifier(penalty='l1,l1=0.01', random_state=3, passes=2).fit(X, y).save(sys.argv[1])"
    )
    for place, seed in (("a", "1"), ("b", "2")):
        (tmp_path / place).mkdir()
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": f"UTC{seed}"}
        subprocess.run([sys.executable, "-c", code, "model"], cwd=tmp_path / place, env=environment, check=True, timeout=300)
    assert (tmp_path / "a" / "model").read_bytes() == (tmp_path / "b" / "model").read_bytes()


# --- what a file of an estimator says --------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["live", "final"])
def estimator_file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("estimator") / "m"
    model = OnlineClassifier(penalty="l1,l1=0.01", random_state=0).fit([(X, np.where(Y > 0, "yes", "no"))], classes="scan")
    model.save(path, final=request.param == "final")
    return path


def test_flipped_and_missing_bytes_are_refused(estimator_file, tmp_path):
    content = estimator_file.read_bytes()
    path = tmp_path / "m"
    wanted = load(estimator_file).decision_function(X).tobytes()
    for at in range(0, len(content), 50):
        path.write_bytes(content[:at])
        with pytest.raises(ModelFileError):
            load(path)
        for bit in (1, 16, 128):
            path.write_bytes(content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :])
            try:
                found = load(path).decision_function(X).tobytes()
            except ModelFileError:
                continue
            assert found == wanted, "a change that is accepted (blanks in the file's header) changes nothing"


def within(**changes):
    return lambda header, arrays: header["estimator"].update(changes)


WRONG = {
    "no estimator": lambda header, arrays: header.pop("estimator"),
    "an estimator that is none": lambda header, arrays: header.update(estimator=[1]),
    "no features": within(features=0),
    "fewer features": within(features=-3),
    "more features": within(features=10**15),
    "features that are text": within(features="5"),
    "no passes": within(passes=0),
    "a history that is none": within(history="long"),
    "an encoding that is none": within(encoding=[1]),
    "an encoding of nothing": within(encoding={"version": 1, "format": "columns"}),
    "an encoding of too many bits": within(encoding={"version": 1, "format": "vw", "hash_bits": 99}),
    "a base that is none": within(encoding={"version": 1, "format": "svmlight", "base": 2}),
    "reports without rows": within(history=[{"loss": 1.0}]),
    "reports of text": within(history=[{"rows": 1, "loss": "1", "since": 1.0}]),
    "names that are none": within(names=[1, 2]),
    "one class": within(classes=["yes"]),
    "many classes": within(classes=["a", "b", "c"]),
    "classes that do not ascend": within(classes=["yes", "no"]),
    "classes of two types": within(classes=["no", 1]),
    "classes that are lists": within(classes=[[], []]),
    "classes of great length": within(**{"class dtype": "<U1000000000"}),
    "classes of no type": within(**{"class dtype": "nonsense"}),
    "classes that are structures": within(**{"class dtype": "V8"}),
    "a parameter that is none": lambda header, arrays: header["estimator"]["params"].update(evil=1),
    "no parameters": within(params=None),
    "a loss that is none": lambda header, arrays: header["spec"].update(loss="nonsense"),
    "a loss from elsewhere that says nothing": lambda header, arrays: header["spec"].update(loss={}),
    "a loss that is a number": lambda header, arrays: header["spec"].update(loss=3),
    "a huge number of outputs": lambda header, arrays: header.update(n_outputs=10**12),
    "a negative size": lambda header, arrays: header.update(size=-1),
    "a huge size": lambda header, arrays: header.update(size=10**15),
    "an array too many": lambda header, arrays: arrays.update({"0.kept.evil": np.zeros(3), "evil": np.zeros(3)}),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_an_estimator_that_cannot_be_is_refused(estimator_file, tmp_path, change):
    shutil.copy(estimator_file, tmp_path / "m")
    rewritten(tmp_path / "m", change)
    with pytest.raises(ModelFileError, match="m: "):
        load(tmp_path / "m")


FINAL = {
    "columns that do not ascend": lambda header, arrays: arrays.update({"0.columns": arrays["0.columns"][::-1].copy()}),
    "columns beyond the features": lambda header, arrays: arrays["0.columns"].__setitem__(-1, 4_000_000_000),
    "columns of another type": lambda header, arrays: arrays.update({"0.columns": arrays["0.columns"].astype(np.int64)}),
    "weights that are not finite": lambda header, arrays: arrays["0.values"].__setitem__(0, np.inf),
    "fewer weights": lambda header, arrays: arrays.update({"0.values": arrays["0.values"][1:]}),
    "no intercept": lambda header, arrays: arrays.pop("intercepts"),
    "more features than there can be": lambda header, arrays: header.update(size=2**40),
    "rows that are none": lambda header, arrays: header.update(rows=-1),
    "a loss that is text": lambda header, arrays: header.update(loss="small"),
}


@pytest.mark.parametrize("change", FINAL.values(), ids=FINAL)
def test_a_final_model_that_cannot_be_is_refused(tmp_path, change):
    OnlineClassifier(random_state=0).fit(X, Y).save(tmp_path / "m", final=True)
    rewritten(tmp_path / "m", change)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


KEPT = {
    "a column beyond the features": lambda header, arrays: arrays["0.kept.columns"].__setitem__(0, 99),
    "columns of another type": lambda header, arrays: arrays.update({"0.kept.columns": np.zeros(2)}),
    "values of another length": lambda header, arrays: arrays.update({"0.kept.u": np.zeros(1)}),
    "no columns": lambda header, arrays: arrays.pop("0.kept.columns"),
}


@pytest.mark.parametrize("change", KEPT.values(), ids=KEPT)
def test_the_last_row_is_checked(tmp_path, change):
    Learner("sadmm", "hinge", "l1,l1=0.01").learn(X, Y).save(tmp_path / "m")
    rewritten(tmp_path / "m", change)
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_the_triangle_of_rls_and_steps_of_coordinates_are_checked(tmp_path):
    Learner("rls", "squared", n_features=5).learn(X, Y).save(tmp_path / "rls")
    rewritten(tmp_path / "rls", lambda header, arrays: arrays.update({"0.kept.R": np.zeros(3)}))
    with pytest.raises(ModelFileError, match="'R' is not known, or has another shape"):
        load(tmp_path / "rls")
    learner = Learner("odrs,relaxation=1.4", "hinge", "l1,l1=0.01", "uniform").learn(X, Y)
    (stamped,) = learner.states[0].stamps
    learner.save(tmp_path / "odrs")
    rewritten(tmp_path / "odrs", lambda header, arrays: arrays[f"0.array.{stamped}"].__setitem__(0, 1e6))
    with pytest.raises(ModelFileError, match="not between the last visit and the last row"):
        load(tmp_path / "odrs")


def test_outputs_have_learnt_the_same_rows(tmp_path):
    Learner("comid", "hinge", n_outputs=2).learn(X, np.column_stack([Y, -Y])).save(tmp_path / "m")
    rewritten(tmp_path / "m", lambda header, arrays: arrays["1.now"].__setitem__(0, 59.0))
    with pytest.raises(ModelFileError, match="different numbers of rows"):
        load(tmp_path / "m")


def test_arrays_of_types_that_no_model_has_and_deep_headers_are_refused(tmp_path):
    save_file({"w": np.zeros(3, np.float16)}, tmp_path / "m", metadata={model_file.FORMAT: '{"version":1}'})
    with pytest.raises(ModelFileError, match="an array of the type F16"):
        load(tmp_path / "m")
    for depth in (500, 990, 3000):
        deep = '{"version":1,"x":' + "[" * depth + "]" * depth + "}"
        save_file({"w": np.zeros(3)}, tmp_path / "m", metadata={model_file.FORMAT: deep})
        with pytest.raises(ModelFileError):
            load(tmp_path / "m")


# --- numbers and parts that no model has -----------------------------------------------------------------------------


def changed(tmp_path, learner, change):
    learner.save(tmp_path / "m")
    rewritten(tmp_path / "m", change)
    return tmp_path / "m"


def part(name, *fields):
    return {"class": f"onlinear.{name}", "text": "made up", "fields": list(fields)}


POWER = part("schedules:Power", 0.5, 0.0, 0.5)
PARTS = {
    "addresses": ("loss", part("jit:BoundLoss", 1, 1, 1, 0)),
    "addresses without fields": ("loss", {"class": "onlinear.compiled.loss_address:BoundLoss", "text": "x"}),
    "rows as a penalty": ("penalty", part("rows:Rows", 1, 2, 3)),
    "a solver as a loss": ("loss", part("solvers.comid:Comid", POWER, False)),
    "a loss as a penalty": ("penalty", part("losses:Squared", 1.0)),
    "a schedule as a solver": ("solver", POWER),
    "a class of the standard library": ("loss", {"class": "os:system", "text": "x", "fields": ["true"]}),
    "a part as a number of an average": ("average", part("averages:Average", POWER, 0.0, 1.0, False)),
    "a flag for a number": ("average", part("averages:Average", True, 0.0, 1.0, False)),
    "a number for a flag": ("average", part("averages:Average", 1.0, 0.0, 1.0, 1.0)),
    "an average of nan": ("average", part("averages:Average", float("nan"), 0.0, 1.0, False)),
    "an infinite step": ("solver", part("solvers.comid:Comid", part("schedules:Power", float("inf"), 0.0, 0.5), False)),
    "a negative step": ("solver", part("solvers.comid:Comid", part("schedules:Power", -0.5, 0.0, 0.5), False)),
    "a number as a schedule": ("solver", part("solvers.comid:Comid", 0.5, False)),
    "a pivot out of the row": ("solver", part("solvers.fiol:Fiol", POWER, part("solvers.fiol:Partition", -5.0))),
    "a search that is a schedule": ("solver", part("solvers.fiol:Fiol", POWER, POWER)),
    "fields that are text": ("penalty", part("penalties:ElasticNet", "0.1", 0.0)),
    "an integer beyond all": ("penalty", part("penalties:ElasticNet", 10**30, 0.0)),
    "a field too few": ("penalty", part("penalties:ElasticNet", 0.1)),
    "no class": ("penalty", {"text": "x", "fields": []}),
}


@pytest.mark.parametrize(("role", "spec"), PARTS.values(), ids=PARTS)
def test_a_file_names_only_parts_on_the_list_with_settings_in_range(tmp_path, role, spec):
    path = changed(
        tmp_path, Learner("fiol", "hinge", "l1,l1=1e-3", "uniform"), lambda header, _: header["spec"].update({role: spec})
    )
    with pytest.raises(ModelFileError, match="m: "):
        load(path)


def test_every_part_on_the_list_comes_back(tmp_path):
    from onlinear.learner import stored_parts

    roles = {role: list(classes.values()) for role, classes in stored_parts.STORABLE.items()}
    assert set(stored_parts.ALL_LOSSES.values()) == set(roles["loss"])
    assert {preset.solver for preset in SOLVERS.values()} == set(roles["solver"])
    for role, classes in roles.items():
        for cls in classes:
            found = json.loads(json.dumps(stored_parts.store(cls())))
            assert stored_parts.make_part(role, found) == cls()


AT_STEPS = ("comid", "rda", "sadmm", "odrs,relaxation=1.4", "fiol")
STEPS = [(2**18 + 1, 1), (65, 1), (2**20, 2**18 + 1), (70, 71), (-1, 0), (2.5, 0), (2**53, 2**53), (np.nan, 0)]


@pytest.mark.parametrize("solver", AT_STEPS)
def test_step_numbers_that_no_run_has_are_refused(tmp_path, solver):
    learner = Learner(solver, "hinge", "l1,l1=1e-3", "uniform").learn(X, Y)
    for t, visit in STEPS:

        def change(header, arrays, t=t, visit=visit):
            arrays["0.now"][:2] = t, visit
            if "0.array.L" in arrays:
                arrays["0.array.L"][:] = visit

        with pytest.raises(ModelFileError, match=r"step numbers of|not finite"):
            load(changed(tmp_path, learner, change))


@pytest.mark.parametrize("rule", ["sums_due", "due"])
def test_the_next_visit_is_the_first_that_is_due(rule):
    is_due = getattr(moments, rule)
    visits = [t for t in range(1 << 20) if is_due(t)] + [1 << 20]
    for first, second in zip([0, *visits], visits, strict=False):
        assert {moments.next_visit(t, is_due) for t in (first, (first + second) // 2, second - 1)} == {second}


NUMBERS = {
    "a clock of 0": ("comid", "none", lambda _, arrays: arrays["0.now"].__setitem__(slice(8, 12), 0.0)),
    "a clock below 1": ("comid", "none", lambda _, arrays: arrays["0.now"].__setitem__(8, 0.5)),
    "an earlier clock of 0": ("sadmm", "none", lambda _, arrays: arrays["0.now"].__setitem__(slice(16, 20), 0.0)),
    "an intercept without one": ("comid", "none", lambda _, arrays: arrays["0.now"].__setitem__(3, 7.0)),
    "a weight that is nan": ("comid", "none", lambda _, arrays: arrays["0.array.V"].__setitem__(0, np.nan)),
    "a kept z that is infinite": ("iodrs", "none", lambda _, arrays: arrays["0.array.VZ"].__setitem__(1, np.inf)),
    "a step of a sign beyond the last": (
        "sgd,schedule=constant,eta=0.1", "none", lambda _, arrays: arrays["0.array.last"].__setitem__(0, 61.0),
    ),
    "a negative count": ("sgd", "rms", lambda _, arrays: arrays["scales"].__setitem__((0, 0), -1.0)),
    "a count beyond the rows": ("sgd", "rms", lambda _, arrays: arrays["scales"].__setitem__((0, 0), 61.0)),
    "a negative square": ("sgd", "rms", lambda _, arrays: arrays["scales"].__setitem__((1, 0), -1.0)),
    "a negative scale": ("sgd", "max-abs", lambda _, arrays: arrays["scales"].__setitem__((1, 0), -1.0)),
}  # fmt: skip


@pytest.mark.parametrize(("solver", "scale", "change"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_that_no_run_has_are_refused(tmp_path, solver, scale, change):
    penalty, average = ("none", "none") if scale != "none" else ("l1,l1=1e-3", "none")
    learner = Learner(solver, "hinge", penalty, average, scale=scale).learn(X, Y)
    with pytest.raises(ModelFileError):
        load(changed(tmp_path, learner, change))


def test_the_triangle_of_rls_is_there_and_has_a_diagonal(tmp_path):
    learner = Learner("rls", "squared", n_features=5).learn(X, Y)
    with pytest.raises(ModelFileError, match="no triangle"):
        load(changed(tmp_path, learner, lambda _, arrays: arrays.pop("0.kept.R")))
    with pytest.raises(ModelFileError, match="diagonal is not positive"):
        load(changed(tmp_path, learner, lambda _, arrays: arrays["0.kept.R"].__setitem__(0, 0.0)))


def test_settings_whose_product_is_0_are_divergence():
    learner = Learner("odrs,lam=5e-324,relaxation=0.3", "hinge", "l1,l1=1")
    with pytest.raises(DivergenceError):
        learner.learn(X, Y).weights()


def test_a_header_that_says_a_thing_twice_is_refused(tmp_path):
    header = '{"version":1,"size":1,"size":2}'
    save_file({"w": np.zeros(3)}, tmp_path / "m", metadata={model_file.FORMAT: header})
    with pytest.raises(ModelFileError, match="given twice"):
        load(tmp_path / "m")


def many_outputs(path, outputs):
    """A short file of many outputs, each in the middle of the longest block there is."""
    y = np.where(RNG.random((2, outputs)) < 0.5, -1.0, 1.0)
    learner = Learner("comid", "hinge", "l1,l1=1e-3", "uniform", n_outputs=outputs).learn(X[:2, :1], y)
    learner.save(path)

    def change(header, arrays):
        for k in range(outputs):
            arrays[f"{k}.now"][:2] = 2**18, 2**15

    rewritten(path, change)


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
def test_many_outputs_share_a_table_until_they_learn(tmp_path):
    many_outputs(tmp_path / "few", 2)
    many_outputs(tmp_path / "m", 300)
    assert (tmp_path / "m").stat().st_size < 200_000
    code = (
        "import resource, sys, numpy; from onlinear.cli.inspect import summary; from onlinear import load\n"
        "for path in sys.argv[1:]:\n"
        "    load(path).predict(numpy.ones((3, 1))); summary(path, 10)\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    command = [sys.executable, "-c", code, tmp_path / "few", tmp_path / "m"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    few, many = map(int, found.stdout.split())
    assert many - few < 200, "MB; a table of its own for each output would take 1,900"
    shared = load(tmp_path / "m").states
    assert all(state.table is shared[0].table for state in shared)


def test_outputs_that_shared_a_table_learn_as_if_they_had_not(tmp_path):
    y = np.column_stack([Y, -Y])
    whole = Learner("comid,eta=0.5", "hinge", "l1,l1=1e-3", "uniform", n_outputs=2).learn(X[:40], y[:40])
    whole.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.states[0].table is again.states[1].table
    for part_of in (slice(40, 41), slice(41, 60)):
        again.learn(X[part_of], y[part_of])
        whole.learn(X[part_of], y[part_of])
    assert again.states[0].table is not again.states[1].table
    assert again.weights(average=True).tobytes() == whole.weights(average=True).tobytes()


def test_names_of_a_final_model_take_the_memory_of_those_asked_for():
    from onlinear.streams import encoding

    description = {
        "version": 1, "format": "columns", "features": [["x", "number"], ["t", "text"]], "categories": "hash", "hash_bits": 30,
        "seed": 0, "missing": {"numbers": "error", "categories": "error"}, "dates": None, "target": None, "values": [],
    }  # fmt: skip
    assert encoding.names_of(description, [0, 1, 2**30, 2**30 + 1]) == ["x", "t (hashed)", "t (hashed)", None]


# --- golden files ----------------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent.parent / "models"
SCORES = json.loads((GOLDEN / "scores.json").read_text())
WRITTEN = {name: found for name, found in SCORES.items() if not name.startswith("pickle:")}


@pytest.mark.parametrize("name", WRITTEN)
def test_model_files_of_version_1_load_for_ever(name, monkeypatch):
    monkeypatch.syspath_prepend(GOLDEN)
    from write import MORE, hexed, scores

    model = load(GOLDEN / f"{name}.onlinear")
    assert hexed(scores(model)) == WRITTEN[name]["scores"], "a loaded model predicts as the one that was saved, bit for bit"
    if "then" in WRITTEN[name]:
        MORE[name](model)
        wanted = np.array([float.fromhex(text) for text in WRITTEN[name]["then"]])
        # What comes after depends on the machine's exp and log.
        np.testing.assert_allclose(np.ravel(scores(model)), wanted, rtol=1e-9, atol=1e-9)


LONGER = ("mixture",)  # whose table of numbers was shorter


@pytest.mark.parametrize("name", [name for name in WRITTEN if not name.endswith("-final") and name not in LONGER])
def test_a_file_that_is_loaded_and_saved_is_byte_identical(name, tmp_path):
    load(GOLDEN / f"{name}.onlinear").save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (GOLDEN / f"{name}.onlinear").read_bytes()


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.pickle")), ids=lambda path: path.stem)
def test_pickles_load_for_ever(path, monkeypatch):
    """A pickle names the modules of its time, wherever their classes stand today."""
    monkeypatch.syspath_prepend(GOLDEN)
    from write import predicted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # of scikit-learn, which writes its version into pickles
        model = pickle.loads(path.read_bytes())
    assert predicted(model) == SCORES[f"pickle:{path.stem}"]
    assert predicted(pickle.loads(pickle.dumps(model))) == SCORES[f"pickle:{path.stem}"]
    assert repr(model)
    if isinstance(model, BaseEstimator):
        assert repr(clone(model)) == repr(model)


def test_every_family_has_its_golden_file():
    assert sorted(path.stem for path in GOLDEN.glob("*.onlinear")) == sorted(WRITTEN)
    families = {SOLVERS[name].solver.__name__ for name in SOLVERS}
    assert {WRITTEN[name]["solver"] for name in WRITTEN} >= families
    assert sum(path.stat().st_size for path in GOLDEN.iterdir() if path.suffix in (".onlinear", ".json")) < 400_000


def test_files_are_those_of_safetensors_without_a_copy_of_the_arrays(tmp_path):
    kinds = ("<u8", "<i8", "<f8", "<u4", "u1", "?")
    arrays = {f'"é\t{kind}': np.arange(6).astype(kind).reshape(2, 3) for kind in kinds}
    arrays |= {"empty": np.zeros((2, 0)), "scalar": np.array(3.0)}
    model_file.write(tmp_path / "m", {"text": 'é"\\'}, arrays)
    header, found = model_file.read(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == save(found, metadata={model_file.FORMAT: model_file._text(header)})
    large = {"w": np.zeros(1 << 20)}
    tracemalloc.start()
    model_file.write(tmp_path / "m", {}, large)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < large["w"].nbytes / 2
