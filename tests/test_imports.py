"""Imports run one way, Numba stays behind one file, and importing the package costs little."""

import ast
import json
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import onlinear

HOME = Path(onlinear.__file__).parent
# A room may import rooms of the floors above its own in this list.
FLOORS = [
    {"errors", "text", "threads", "pages"},
    {"files"},
    {"compiled"},
    {"losses", "penalties", "schedules", "averages", "rows"},
    {"softmax"},
    {"certified"},
    {"solvers"},
    {"learner", "streams"},
    {"training"},
    {"models"},
    {"shards"},
    {"dask", "report", "papers", "jit", "estimators", "path", "final", "river"},
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(FLOORS) for name in layer}
CLASSES = {
    "DivergenceError",
    "Learner",
    "ModelFileError",
    "OnlineClassifier",
    "OnlineRegressor",
    "PenaltyPath",
    "QualityWarning",
}
ROOT_NAMES = {"__version__", "load", *CLASSES}


def module_of(path):
    return path.relative_to(HOME).parts[0].removesuffix(".py")


@cache
def nodes(path):
    """The syntax of a file, which several tests read."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)]


def imported(path):
    """Every module of the package that a file imports, wherever the statement stands."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from [alias.name.split(".")[1]] if alias.name.startswith("onlinear.") else []
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            first, *rest = node.module.split(".")
            if first == "onlinear":
                yield from [rest[0]] if rest else [alias.name for alias in node.names if alias.name not in ROOT_NAMES]


FILES = [path for path in HOME.rglob("*.py") if path.name not in ("__init__.py", "__main__.py") or path.parent != HOME]


def modules_imported(path, known):
    """The modules of the package that a file names in import statements, also in those inside functions."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("onlinear"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)


def test_no_module_imports_itself_through_others():
    known = {
        ".".join(("onlinear", *p.relative_to(HOME).with_suffix("").parts)).removesuffix(".__init__"): p
        for p in HOME.rglob("*.py")
    }
    left = {name: set(modules_imported(path, known)) - {name} for name, path in known.items()}
    while ready := [name for name, others in left.items() if not others & set(left)]:
        for name in ready:
            del left[name]
    assert not left, "modules on a circle, or above one"


def test_every_module_has_its_place():
    assert {module_of(path) for path in FILES} <= set(RANK), "a new room: say in FLOORS where it stands"


def test_imports_run_one_way():
    wrong = [
        f"{path.relative_to(HOME)} imports {name}"
        for path in FILES
        for name in imported(path)
        if name != module_of(path) and RANK[name] >= RANK[module_of(path)]
    ]
    assert not wrong


def test_no_relative_imports():
    for path in HOME.rglob("*.py"):
        for node in nodes(path):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


def numba_imports(path):
    """The modules of Numba and llvmlite that a file imports from."""
    for node in nodes(path):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from (name for name in names if name.partition(".")[0] in ("numba", "llvmlite"))


def test_only_the_bridge_knows_numba():
    assert {path.parent.name for path in HOME.rglob("*.py") if any(numba_imports(path))} == {"compiled"}


def test_private_names_of_numba_stand_in_one_file():
    public = {"numba", "numba.extending", "numba.types", "llvmlite"}
    users = {path.name for path in (HOME / "compiled").glob("*.py") if not set(numba_imports(path)) <= public}
    assert users <= {"_private.py"}


def test_solvers_name_no_loss():
    """A solver takes any loss; a preset's own is named as text."""
    for path in (HOME / "solvers").glob("*.py"):
        classes = {
            alias.name
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom) and node.module == "onlinear.losses"
            for alias in node.names
            if alias.name[0].isupper()
        }
        assert classes <= {"Squared", "Hinge"}, f"{path.name} imports {classes}"


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, onlinear; onlinear.__version__;"
        "print([n for n in ('numba', 'sklearn', 'scipy', 'numpy', 'pyarrow', 'pandas', 'rich', 'typer') if n in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == "[]"


def test_commands_on_text_load_no_library_of_estimators_or_tables(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1 3:0.5\n-1 2:1\n" * 8)
    code = """
        import sys
        import scipy.linalg  # which Numba loads; of old releases it loads scipy.sparse
        before = set(sys.modules)
        from onlinear.cli import app
        for line in ("train rows.svm -q -m m", "predict m rows.svm", "evaluate m rows.svm --json", "inspect m --json"):
            app(line.split(), standalone_mode=False)
        heavy = "sklearn", "pandas", "pyarrow", "scipy.sparse", "scipy.stats", "pydantic"  # Typer converts values with this
        heavy += ("numba.np.arrayobj",) if "cached" in sys.argv else ()  # of the compiler
        print(sorted(set(heavy) & (set(sys.modules) - before)), file=sys.stderr)
    """
    for words in ([], ["cached"]):
        command = [sys.executable, "-c", textwrap.dedent(code), *words]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300)
        assert found.stderr.strip() == "[]"


def test_a_python_that_leaves_no_docstrings():
    code = """
        import onlinear
        learner = onlinear.Learner("sgd", loss="hinge", penalty="l2=0.1")
        learner.learn([[1.0], [2.0]], [1, -1])
        from onlinear.cli import app
        app(["parts", "--json"], standalone_mode=False)
    """
    command = [sys.executable, "-OO", "-c", textwrap.dedent(code)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    parts = json.loads(found.stdout)
    assert all("No formula: Python runs with -OO" in part["text"] for part in parts)
    assert all(part["words"] and "(factor" not in part["words"] for part in parts)


def test_public_names_and_modules_are_listed_and_found_before_their_first_use():
    code = """
        import onlinear
        print({*onlinear.__all__, "streams", "losses"} - {*dir(onlinear)})
        print(onlinear.streams.__name__)
        try:
            onlinear.Lerner
        except AttributeError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.splitlines() == ["set()", "onlinear.streams", "module 'onlinear' has no attribute 'Lerner'"]
