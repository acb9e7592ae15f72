"""The page about a model: its numbers are the file's, names are escaped, and it needs nothing else."""

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from command import run
from seldom import seldom

from onlinear import OnlineClassifier, OnlineRegressor, __version__, load
from onlinear.cli import runs
from onlinear.cli.checkpoints import Checkpoints
from onlinear.cli.settings import Settings
from onlinear.models.evaluation import stretches
from onlinear.models.ranking import Ranking
from onlinear.report import figures, number

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


class Page(HTMLParser):
    """Every tag is closed, and nothing is loaded."""

    VOID = ("meta", "use", "path", "br", "rect")

    def __init__(self, text):
        super().__init__()
        self.open, self.words = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "img", "link", "iframe")
        assert not any(
            value and value.startswith(("http", "//")) for name, value in attrs if name in ("src", "href", "xlink:href")
        )
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data.strip())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    shown = run("train", "breast-cancer", "--model", folder / "m", "--report", folder / "run.html", "--quiet")
    assert not shown, "--quiet shows nothing but errors"
    return folder


def test_the_page_of_a_run_has_its_figures_and_the_command_that_makes_it_again(trained):
    page = Page((trained / "run.html").read_text())
    text = " ".join(page.words)
    assert text.count("seconds since the first row") == 1
    assert text.count("best constant") >= 3
    assert f"onlinear report {trained / 'm'} --output {trained / 'run.html'}" in page.words
    assert "It leaves out the best constant and the seconds of the run" in text
    model = load(trained / "m")
    assert f"{model.history_[-1]['loss']:.4g}" in page.words


def test_the_page_of_a_run_that_continues_is_of_that_run(trained, tmp_path, monkeypatch):
    drawn, draw = [], figures.history_figures
    monkeypatch.setattr("onlinear.report.history_figures", lambda *given: drawn.append(given) or draw(*given))
    places = "breast-cancer", "--model", tmp_path / "m", "--report", tmp_path / "run.html"
    shown = run("train", "--from", trained / "m", *places, "--json")
    ((reports, _, seconds, _),) = drawn
    told = [line for line in map(json.loads, shown.splitlines()) if line["kind"] == "report"]
    assert [(one["rows"], one["loss"]) for one in reports] == [(one["rows"], one["loss"]) for one in told]
    assert reports[1]["loss"] != load(tmp_path / "m").history_[1]["loss"], "the history is of the run that began the model"
    assert [rows for rows, _ in seconds] == [one["rows"] for one in told]
    text = " ".join(Page((tmp_path / "run.html").read_text()).words)
    assert re.search(rf"{told[-1]['loss']:.4g} +loss of unseen rows", text)
    assert "loss of the best constant for the rows of this run" in text
    assert "It shows the run that began the model in place of this one, and leaves out the best constant" in text


def test_the_seconds_of_a_resumed_run_count_from_there(tmp_path):
    keeper = Checkpoints(str(tmp_path / "c"), 300, None, {"model": str(tmp_path / "m"), "final": False, "every": "300"})
    assert len(list(runs.start(Settings(("breast-cancer",), {}), keeper))) > 1
    run("train", "--resume", tmp_path / "c", "--report", tmp_path / "run.html", "--quiet")
    text = " ".join(Page((tmp_path / "run.html").read_text()).words)
    assert "seconds since the run was resumed" in text
    assert "seconds since the first row" not in text


def test_the_loss_is_that_of_unseen_rows_in_one_pass_only(trained, tmp_path):
    run("train", "iris", "--passes", 3, "--model", tmp_path / "m", "--report", tmp_path / "run.html", "--quiet")
    again, once = (" ".join(Page(path.read_text()).words) for path in (tmp_path / "run.html", trained / "run.html"))
    assert "loss of unseen rows" in once
    assert "weight x loss" not in once + again
    assert "loss of unseen rows" not in again
    assert "trained on 450 rows in 3 passes" in again
    assert "Columns count from 0." in once
    assert once.rstrip().endswith(f"onlinear {__version__}"), "the release, not the version of the file"


def test_a_solver_that_scored_no_row_before_it_learned_it_has_no_such_loss(tmp_path):
    (tmp_path / "row.svm").write_text("1 1:1\n")
    settings = ("--penalty", "l1=1e-2", "--tol", "0.5", "--quiet")
    run("train", "breast-cancer", *settings, "--model", tmp_path / "m", "--report", tmp_path / "run.html")
    run("report", tmp_path / "m", tmp_path / "row.svm", "-o", tmp_path / "one.html")
    words = Page((tmp_path / "one.html").read_text()).words
    assert not {"loss of unseen rows", "loss of rows before they were trained on"} & set(words)
    assert "1 row: loss" in " ".join(words)


def test_every_table_scrolls_in_its_own_box_and_names_of_classes_stay_whole(tmp_path):
    names = np.array([f"a_class_of_the_long_name_{k}" for k in range(12)])
    lines = ["x,label", *(f"{k % 12},{names[k % 12]}" for k in range(48))]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    reading = ("--target", "label", "--scan")
    run("train", tmp_path / "rows.csv", *reading, "--model", tmp_path / "m", "--quiet")
    run("report", tmp_path / "m", tmp_path / "rows.csv", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert ".scroll { overflow-x: auto; }" in text
    assert text.count("<table") == text.count('<div class="scroll"><table') == 3
    # "anywhere" would let a column of a wide table shrink to one letter.
    assert ".confusion th { overflow-wrap: break-word;" in text
    assert "A row is a true class, a column the class that was predicted." in text


def test_a_confusion_of_weighted_rows_has_all_their_digits(tmp_path):
    (tmp_path / "rows.csv").write_text("label,w,x\n0,12345.5,-1\n1,2000,1\n")
    reading = ("--target", "label", "--weight", "w")
    run("train", tmp_path / "rows.csv", *reading, "--passes", 9, "--model", tmp_path / "m", "--quiet")
    run("report", tmp_path / "m", tmp_path / "rows.csv", *reading[2:], "-o", tmp_path / "r.html")
    found = re.findall(r'<td class="number">([\d,.]+)</td>', (tmp_path / "r.html").read_text())
    assert found[:4] == ["12,345.50", "0", "0", "2,000"]


def test_losses_of_counts_are_drawn_below_zero_and_infinite_ones_are_shown(tmp_path):
    reports = [{"rows": rows, "loss": 5.0 - 4.0 * rows, "since": 1.0, "nonzeros": 1} for rows in (1, 2)]
    drawn, _, timed = figures.history_figures(reports, None, [(1, 0.1), (2, 0.2)], "the first row")
    for figure in (drawn, timed):
        assert any(label.startswith("\N{MINUS SIGN}") for label in re.findall(r">([^<]+)</text>", figure.svg))
    assert number(float("inf")) == "inf"
    assert [number(value) for value in (2000, 2000.0, 2000.5)] == ["2,000", "2,000", "2000"]


def test_a_clipped_regression_shows_the_loss_before_the_clip(tmp_path):
    shown = run("train", "diabetes", "--report", tmp_path / "run.html", "--model", tmp_path / "m")
    assert "before the clip" in " ".join(Page((tmp_path / "run.html").read_text()).words)
    assert f"loss of the linear scores: {load(tmp_path / 'm').history_[-1]['loss_linear']:.4g}" in shown


def test_with_rows_it_shows_what_evaluate_finds(trained):
    import json

    run("report", trained / "m", "breast-cancer", "-o", trained / "rows.html")
    page = Page((trained / "rows.html").read_text())
    found = json.loads(run("evaluate", trained / "m", "breast-cancer", "--json"))
    for name in ("loss", "error", "auc", "log_loss"):
        assert f"{found[name]:.4g}" in " ".join(page.words)
    for title in ("True against false positives", "Precision against recall", "How often a probability came true"):
        assert title in page.words
    run("report", trained / "m", "breast-cancer", "-o", trained / "again.html")
    again = (trained / "again.html").read_text().replace("again.html", "rows.html")
    assert again == (trained / "rows.html").read_text()


def test_the_command_of_a_page_takes_names_that_begin_with_a_hyphen(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-m").write_bytes((trained / "m").read_bytes())
    Path("-rows.svm").write_text("1 1:2\n0 2:1\n")
    run("report", "-o", "r.html", "--", "-m", "-rows.svm")
    command = next(word for word in Page(Path("r.html").read_text()).words if word.startswith("onlinear report"))
    Path("r.html").unlink()
    run(*shlex.split(command)[1:])
    assert command in Page(Path("r.html").read_text()).words


def test_names_and_labels_of_any_kind_are_text(tmp_path):
    pd = pytest.importorskip("pandas")
    bad = "<script>alert(1)</script>&\"'"
    frame = pd.DataFrame({bad: np.arange(40.0), "b": np.arange(40.0) % 3})
    OnlineClassifier().fit(frame, np.where(np.arange(40) < 20, bad, "ü")).save(tmp_path / "m")
    run("report", tmp_path / "m", "-o", tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "<script" not in text
    assert bad in " ".join(Page(text).words)


@pytest.mark.parametrize(
    "model",
    [
        OnlineRegressor(),
        OnlineClassifier(loss="softmax"),
        OnlineClassifier("hinge", penalty="l1=100"),
    ],
    ids=["numbers", "classes", "empty"],
)
@pytest.mark.parametrize("final", [False, seldom(True)])
def test_every_kind_of_model_has_a_page(model, final, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = (
        X[:, 0]
        if isinstance(model, OnlineRegressor)
        else np.digitize(X[:, 0], [-0.5, 0.5][: 1 if model.loss == "hinge" else 2])
    )
    model.fit(X, y).save(tmp_path / "m", final=final)
    lines = [" ".join([f"{y[i]:g}", *(f"{j + 1}:{x:.6g}" for j, x in enumerate(X[i]))]) for i in range(60)]
    (tmp_path / "rows.svm").write_text("\n".join(lines))
    run("report", tmp_path / "m", tmp_path / "rows.svm", "-o", tmp_path / "r.html")
    Page((tmp_path / "r.html").read_text())


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path, trained):
    assert "--report needs --model" in run("train", "iris", "--report", tmp_path / "r.html", code=2)
    assert "one file" in run("train", "iris", "--model", tmp_path / "m", "--report", tmp_path / "m", code=2)
    assert not list(tmp_path.iterdir())
    assert "the model" in run("report", trained / "m", "-o", trained / "m", code=2)


def test_a_missing_library_is_named(tmp_path, trained, monkeypatch):
    monkeypatch.setattr("onlinear.pages.NEEDED", ("jinja2", "no_such_library"))
    found = run("report", trained / "m", "-o", tmp_path / "r.html", code=2)
    assert re.search(r"no_such_library: pip install 'onlinear\[report\]'", found.replace("\n", " "))


def test_curves_and_stretches_by_their_definition():
    scores, positive = np.array([3.0, 2.0, 2.0, 1.0]), np.array([True, False, True, False])
    ranking = Ranking()
    ranking.add(scores, positive, np.array([1.0, 1.0, 2.0, 3.0]))
    area, points = ranking.measure()
    assert [tuple(point) for point in points] == [(0.0, 1 / 3, 1.0), (0.25, 1.0, 0.75), (1.0, 1.0, 3 / 7)]
    assert area == pytest.approx((1.0 * 4.0 + 2.0 * (3.0 + 0.5)) / 12.0)
    ranking.add(scores, np.ones(4, bool), np.ones(4))
    assert ranking.measure() == (None, None)
    found = stretches(np.arange(100) < 50, np.ones(100))
    assert found[0] == (5, 1.0)
    assert found[-1] == (100, 0.0)
    assert np.isnan(stretches(np.ones(2), np.array([0.0, 1.0]))[0][1])
