"""What the documents say is executed: every Python block in order, every name against the code, the README's commands."""

from __future__ import annotations

import importlib.util
import json
import lzma
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import SGDRegressor
from typer.main import get_command
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, PenaltyPath
from onlinear.cli import app
from onlinear.learner.parts import build_average, build_loss, build_penalty, build_solver
from onlinear.solvers import SOLVERS

ROOT = Path(__file__).parent.parent
COMMANDS = get_command(app).commands
PAGES = sorted([*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md"), ROOT / "README.md"])
IN_PYTHON = [path for path in PAGES if "```python" in path.read_text()]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))
SESSIONS = [page for page in PAGES if "<!-- session: " in page.read_text()]
OF_EXTRAS = {"onlinear.dask": "distributed", "onlinear.river": "river"}  # what they import is not always installed
OF_THE_CLOCK = {"seconds", "read", "parse", "learn", "wait"}
ALWAYS = ("losses", "quantiles", "stream")  # the others run with -m exhaustive, and in every build of the site


@pytest.mark.parametrize("page", IN_PYTHON, ids=lambda path: path.stem)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": f"page_{page.stem}"}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
    assert blocks
    for block in blocks:
        line = page.read_text()[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
    for recorded in re.findall(r"^    (new\.csv:2: .*\n(?: {4}.*\n|\n)+)", page.read_text(), re.MULTILINE):
        model, rows = re.search(r"onlinear explain (\S+\.onlinear) ([\w.]+)", page.read_text()).groups()
        shown = CliRunner().invoke(app, ["explain", model, rows, "--rows", "1"]).stdout.splitlines()
        assert [line for line in map(str.strip, recorded.splitlines()) if line not in map(str.strip, shown)] == []


def test_parts_that_documents_name_are_known():
    builds = {
        "solver": lambda spec: build_solver(spec, build_penalty("none"), 100),
        "loss": build_loss,
        "penalty": build_penalty,
        "average": lambda spec: build_average(spec, 100),
    }
    for page in PAGES:
        if page.stem != "other-tools":  # whose other half is of other tools
            for role, build in builds.items():
                for named in re.findall(rf"\b{role}=\"([^\"]+)\"|--{role} ([^\s`'\"|]+)", page.read_text()):
                    build("".join(named))


@pytest.mark.parametrize(
    "example", [pytest.param(e, id=e.stem, marks=[] if e.stem in ALWAYS else pytest.mark.exhaustive) for e in EXAMPLES]
)
def test_an_example_runs(example, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the gallery draws with matplotlib")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.get_fignums()))
    monkeypatch.chdir(tmp_path)
    exec(compile(example.read_text(), str(example), "exec"), {"__name__": "__main__"})
    assert shown or "pyplot" not in example.read_text()
    pyplot.close("all")


def command_lines(text):
    """The lines of a page's blocks that call the command, without the words and redirections behind them."""
    fenced = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^ {4}(.*)$", text, re.MULTILINE)
    lines = re.findall(r"^(?:\$ )?(onlinear [a-z]+ .*)$", "\n".join([*fenced, *indented]), re.MULTILINE)
    return [re.split(r" {2,}| [>|] | && ", line)[0] for line in lines]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_command_takes_the_lines_of_a_page(page):
    for line in command_lines(page.read_text()):
        name, *arguments = shlex.split(line, comments=True)[1:]
        COMMANDS[name].make_context(name, arguments)


@pytest.mark.parametrize("page", SESSIONS, ids=lambda path: path.stem)
def test_a_recorded_session_shows_what_the_command_prints(page, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ccat.svm.xz", "ccat.t.svm.xz"):
        (tmp_path / name).symlink_to(data / "rcv1-ccat" / name)
    sessions = re.findall(r"<!-- session: (\w+) -->\n```\n\$ onlinear (.*?)\n(.*?)```\n", page.read_text(), re.DOTALL)
    for name, command, recorded in sessions:
        if name in ("resume", "same"):  # of a run that was interrupted
            continue
        shown = CliRunner().invoke(app, shlex.split(command), env={"COLUMNS": "80"}).stdout.splitlines()
        said = [line for line in recorded.partition("^C\n")[0].splitlines() if line != "..."]
        if name == "json":
            found = [json.loads(line) for line in shown]
            for line in map(json.loads, said):
                (same,) = [one for one in found if (one["kind"], one["rows"]) == (line["kind"], line["rows"])]
                assert list(same) == list(line)
                for key in set(line) - OF_THE_CLOCK:
                    numbers = isinstance(line[key], (float, dict))
                    assert same[key] == (pytest.approx(line[key], rel=1e-9) if numbers else line[key])
        else:
            timeless = [line for line in said if not re.match(r"time: |.* in [0-9.]+ s ", line)]
            assert [line for line in timeless if line not in shown] == []


def test_the_page_of_wishes_counts_them_and_shows_those_that_are_met():
    text = (ROOT / "docs/wishes.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| (yes|in part|not planned|no)\b.*\|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 38))
    kinds = [kind for _, kind in rows]
    counted = re.search(r"(\d+) are met, (\d+) in part, (\d+) not, (\d+) are not planned", text).groups()
    assert [int(count) for count in counted] == [kinds.count(kind) for kind in ("yes", "in part", "no", "not planned")]
    shown = set(re.findall(r"\d+", " ".join(re.findall(r"^(?:# )?(\d+(?:[ ,and]+\d+)*)(?:: | is )", text, re.MULTILINE))))
    assert {number for number, kind in rows if kind == "yes"} <= shown


def test_the_parts_that_the_page_on_other_tools_names_are_known():
    text = (ROOT / "docs/other-tools.md").read_text()
    text = text.partition("| onlinear |")[2]
    ours = [row.split(" | ")[-1] for row in re.findall(r"^\| (.+) \|$", text, re.MULTILINE) if row.count(" | ") == 1]
    for build, names in ((build_solver, ("solver=", "--solver ")), (build_loss, ("loss=", "--loss "))):
        for name in names:
            for spec in re.findall(rf"{name}\"?([a-z][\w,=.-]+)", "\n".join(ours)):
                build(spec, build_penalty("none")) if build is build_solver else build(spec)


def test_the_losses_of_sgd_are_those_that_the_page_on_other_tools_names():
    theirs = {  # as scikit-learn documents them: of the margin m, or of the residual e
        "log_loss": lambda m: np.log1p(np.exp(-m)),
        "hinge": lambda m: np.maximum(0.0, 1.0 - m),
        "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
        "modified_huber": lambda m: np.where(m >= -1.0, np.maximum(0.0, 1.0 - m) ** 2, -4.0 * m),
        "perceptron": lambda m: np.maximum(0.0, -m),
        "squared_error": lambda e: e**2 / 2.0,
        "huber": lambda e: np.where(np.abs(e) <= 0.1, e**2 / 2.0, 0.1 * np.abs(e) - 0.1**2 / 2.0),
        "epsilon_insensitive": lambda e: np.maximum(0.0, np.abs(e) - 0.1),
    }
    assert SGDRegressor().epsilon == 0.1
    text = (ROOT / "docs/other-tools.md").read_text().partition("## From Vowpal Wabbit")[0]
    rows = re.findall(r"^\| (`loss=.*) \| (`loss=.*) \|$", text, re.MULTILINE)
    pairs = [pair for row in rows for pair in zip(*(re.findall(r'`(?:loss=)?"([^"]+)"', side) for side in row), strict=True)]
    named = {name: ours for name, ours in pairs if name in theirs}
    assert named.keys() == theirs.keys()
    for name, ours in named.items():
        loss, number = build_loss(ours), name in ("squared_error", "huber", "epsilon_insensitive")
        for score in np.linspace(-3.0, 3.0, 61):
            assert np.isclose(loss.factor * loss.value(score, 0.0 if number else 1.0), theirs[name](score)), ours


def test_the_solver_table_names_every_solver_and_no_other():
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/solvers.md").read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`,=]+)`", row)]
    assert sorted(named) == sorted(SOLVERS)


def test_files_that_documents_name_exist():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text()
        for name in re.findall(r"`((?:src|tests|docs|benchmarks|examples|\.ci)/[\w./-]+)`", text):
            assert (ROOT / name).exists(), f"{page.name} names {name}"
        for name in re.findall(r"`(solvers/\w+\.py)`", text):
            assert (ROOT / "src/onlinear" / name).exists(), f"{page.name} names {name}"
        for link in re.findall(r"\]\(((?!http)[^)#]+)\)", text):
            assert (page.parent / link).exists(), f"{page.name} links {link}"


def test_functions_that_the_page_on_security_names_stand_where_it_says():
    found = re.findall(r"`([\w/]+\.py)` \(`(\w+)`(?:, `(\w+)`)?\)", (ROOT / "docs/security.md").read_text())
    assert len(found) >= 5
    for file, *names in found:
        text = (ROOT / "src/onlinear" / file).read_text()
        for name in filter(None, names):
            assert re.search(rf"^ *def {name}\(|^{name}\b", text, re.MULTILINE), f"{file} has no {name}"


def test_methods_that_the_page_on_security_names_are_of_these_classes():
    texts = [path.read_text() for path in sorted((ROOT / "src/onlinear").rglob("*.py"))]
    found = re.findall(r"`([A-Z]\w+)\.(\w+)`", (ROOT / "docs/security.md").read_text())
    assert len(found) >= 10
    for owner, name in found:
        bodies = [
            body for text in texts for body in re.findall(rf"^class {owner}\b.*?(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
        ]
        assert any(re.search(rf"\b{name}\b", body) for body in bodies), f"{owner} has no {name}"


def anchors(page):
    """The names that GitHub gives a page's headings."""
    titles = re.findall(
        r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE
    )
    return [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


def test_headings_that_documents_link_exist():
    for page in [*ROOT.glob("*.md"), *PAGES]:
        for link, anchor in re.findall(r"\]\(((?!http)[^)#]*)#([^)]+)\)", page.read_text()):
            target = page.parent / link if link else page
            assert anchor in anchors(target), f"{page.name} links {link}#{anchor}"


# Words that a reader stumbles over, and what to write: learned, continues, byte-identical, like, default, depends on.
AVOIDED = (
    "learnt",
    "goes on",
    "go on",
    "going on",
    "the very bytes",
    "and its kin",
    "habit",
    "it goes by",
    "come and go",
    "that one's",
    "not believed",
    "to be had",
    "for machines",
)


def avoided(text):
    """The lines of a text that have such words."""
    words = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)
    return [line.strip() for line in text.splitlines() if words.search(line)]


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_a_page_is_in_plain_words(page):
    assert avoided(page.read_text()) == []


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_in_plain_words(command):
    shown = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "400"}).stdout
    assert "Usage:" in shown
    assert avoided(shown) == []


@pytest.mark.parametrize("marker", ["main", "tests"])
def test_the_readme_has_the_commands_that_ci_runs(marker):
    block = re.search(rf"^<!-- ci: {marker} -->\n```sh\n(.+)\n```$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert block
    assert block[1].startswith("python3 -m venv .venv && ")


def test_the_table_of_public_names_has_them_all():
    table = (ROOT / "docs/guide.md").read_text().partition("## What is public\n")[2].partition("\n## ")[0]
    for name in ("onlinear", "onlinear.streams", "onlinear.shards", *OF_EXTRAS):
        (row,) = re.findall(rf"^\| `{name}` \| (.+) \|$", table, re.MULTILINE)
        if name not in OF_EXTRAS or importlib.util.find_spec(OF_EXTRAS[name]):
            assert set(importlib.import_module(name).__all__) <= set(re.findall(r"`([^`]+)`", row))
    for name in set(re.findall(r"`(onlinear(?:\.\w+)+)`", table)) - set(OF_EXTRAS):
        importlib.import_module(name)


def test_every_room_says_whether_it_is_public():
    rooms = [importlib.import_module(f"onlinear.{name}") for name in ("cli", "files", "papers", "rows", "streams", "text")]
    assert [room.__name__ for room in rooms if "public" not in room.__doc__.split("\n")[0].lower()] == []


def test_the_table_of_a_path_is_what_the_code_gives(data):
    text = (ROOT / "docs/path.md").read_text().partition("<!-- path: begin -->")[2].partition("<!-- path: end -->")[0]
    shown = [line.split(" | ") for line in text.splitlines() if re.match(r"\| [0-9]", line)][::4]
    grid = np.geomspace(1e-7, 1e-2, 32)
    strengths = [grid[np.argmin(np.abs(np.log(grid / float(cells[0].strip("| ")))))] for cells in shown]
    with lzma.open(data / "rcv1-ccat/ccat.svm.xz") as file:
        X, y = load_svmlight_file(file, n_features=47_236)
    path = PenaltyPath(OnlineClassifier(random_state=0), [f"l1={l1:g}" for l1 in strengths]).fit(X, y)
    for k, (_, loss, error, _, nonzeros, *_) in enumerate(shown):
        assert (loss, error) == (f"{path.losses_[k]:.4f}", f"{100 * path.errors_[k]:.2f}")
        assert nonzeros == f"{path.nonzeros_[k]:,}"


def test_the_page_on_scale_says_what_a_column_takes():
    (row,) = re.findall(r"^\| memory of the state \| (.*)$", (ROOT / "docs/scale.md").read_text(), re.MULTILINE)
    X, y = np.eye(4), [0, 1, 0, 1]
    default, sparse = (OnlineClassifier(penalty=penalty).fit(X, y).learner_.bytes_per_column for penalty in (None, "l1=1e-4"))
    assert f"the default takes {default}, with l1 {sparse};" in row
    dense = OnlineClassifier().fit(np.random.default_rng(0).normal(size=(40, 4)), y * 10).learner_
    assert f"and {dense.bytes_per_column - default} more of a column that it centres" in row
    assert dense.bytes_per_new_column == default
    for named, size in re.findall(r"(`[a-z-]+`(?:(?:, | and )`[a-z-]+`)*) (\d+)", row):
        for solver in re.findall(r"[\w-]+", named.replace(" and ", " ")):
            learner = Learner(solver, "logistic", average="none").learn(X, [-1, 1, -1, 1])
            state = [array for name, array in learner.freeze()[1].items() if ".array." in name]
            assert sum(array.nbytes for array in state) == 4 * int(size), solver
    assert Learner("comid", "logistic", average="none").bytes_per_column == 8
    assert Learner("comid", "logistic", average="uniform").bytes_per_column == 24
    assert Learner("comid", "logistic", average="none", scale="rms").bytes_per_column == 24
