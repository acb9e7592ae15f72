"""Model files: the same bytes for the same training, and one clear error for every file that is none."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from onlinear import Learner, ModelFileError, OnlineClassifier, load, models

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
    header, _ = models.read(path)
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
    save_file({"w": np.zeros(3)}, tmp_path / "m", metadata={models.FORMAT: header})
    with pytest.raises(ModelFileError, match="header is damaged"):
        load(tmp_path / "m")


def test_a_newer_file_says_upgrade(tmp_path):
    save_file({"w": np.zeros(3)}, tmp_path / "m", metadata={models.FORMAT: json.dumps({"version": models.VERSION + 1})})
    with pytest.raises(ModelFileError, match="model file version 2; this release reads up to 1"):
        load(tmp_path / "m")


def rewritten(path, change):
    """The file with its header changed by someone who knows how to make a digest."""
    header, arrays = models.read(path)
    del header["digest"]
    change(header, arrays)
    models.write(path, header, arrays)


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
    with pytest.raises(FileNotFoundError, match="no model file at"):
        load(tmp_path / "gone")
    with pytest.raises(ModelFileError, match="not a file"):
        load(tmp_path)


def test_a_failed_write_leaves_the_old_file_and_no_other(path, monkeypatch):
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(models.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        trained(slice(0, 9)).save(path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_the_file_has_the_permissions_of_an_ordinary_one(path):
    ordinary = path.parent / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_a_users_part_must_be_passed_again(tmp_path):
    from onlinear.losses import Hinge

    Learner("comid", Hinge(1.0, 0.5), n_features=5).learn(X, Y).save(tmp_path / "m")
    with pytest.raises(ValueError, match=r"pass the same object: load\(path, loss=\.\.\.\)"):
        load(tmp_path / "m")
    assert load(tmp_path / "m", loss=Hinge(1.0, 0.5)).loss == Hinge(1.0, 0.5)


def test_classes_and_names_of_an_estimator_come_back(tmp_path):
    model = OnlineClassifier(random_state=0).fit(X, np.where(Y > 0, "yes", "no"))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.get_params() == model.get_params()
    assert again.predict(X).tolist() == model.predict(X).tolist()
