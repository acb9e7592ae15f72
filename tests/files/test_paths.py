"""What paths lead to: two names of one file, and names that the system takes."""

import os

from onlinear.files import paths, writing


def test_the_same_file(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "other").write_bytes(b"")
    assert paths.same(tmp_path / "a", f"{tmp_path}/./a")
    assert paths.same(tmp_path / "new", f"{tmp_path}/../{tmp_path.name}/new")
    assert not paths.same(tmp_path / "a", tmp_path / "other")
    assert not paths.same(tmp_path / "a", tmp_path / "new")
    if os.name == "posix":
        (tmp_path / "link").symlink_to("a")
        (tmp_path / "dangling").symlink_to("new")
        os.link(tmp_path / "a", tmp_path / "hard")
        assert paths.same(tmp_path / "a", tmp_path / "link")
        assert paths.same(tmp_path / "link", tmp_path / "hard")
        assert paths.same(tmp_path / "dangling", tmp_path / "new")
        assert not paths.same("/dev/null", "/dev/null"), "which is read and written without harm"


def test_a_name_with_a_suffix_is_no_longer_than_the_system_takes(tmp_path):
    assert paths.suffixed("a/m", ".partial") == os.path.join("a", "m.partial")
    for name in ("x" * 255, "ö" * 127):
        partial = paths.suffixed(tmp_path / name, ".partial")
        assert partial.endswith(".partial")
        writing.write(partial, b"x")
