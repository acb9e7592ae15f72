"""The recipes of the pages for other engines run as they stand: on the engines where these are installed, and everywhere on
plain Python that hands over tasks and results as they do."""

import pickle
import re
import shutil
import sys
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = {"ray": "ray.md", "pyspark": "spark.md"}


def run_page(engine):
    exec(
        "\n".join(re.findall(r"^```py\n(.*?)^```", (DOCS / PAGES[engine]).read_text(), re.DOTALL | re.MULTILINE)),
        {"__name__": "__main__"},
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", PAGES)
def test_the_page_runs(engine):
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    if engine == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    run_page(engine)


class Reference:
    """A value as an object store has it: pickled, with arrays that are not to be written."""

    def __init__(self, value):
        buffers = []
        self.head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        self.buffers = [buffer.raw().tobytes() for buffer in buffers]

    def get(self):
        return pickle.loads(self.head, buffers=self.buffers)


class Ray(ModuleType):
    """Its remote functions, run where they are called."""

    put = Reference

    @staticmethod
    def remote(function):
        def run(*given):
            each = (it if isinstance(it, Reference) else Reference(it) for it in given)
            return Reference(function(*(it.get() for it in each)))

        return SimpleNamespace(remote=run)

    @staticmethod
    def get(asked):
        return [it.get() for it in asked] if isinstance(asked, list) else asked.get()

    @staticmethod
    def init(**options):
        pass

    shutdown = init


class Frame:
    """A data frame in partitions; what they give comes in no order, from batches of few rows."""

    place = ContextVar("place")

    def __init__(self, session, parts):
        self.sparkSession, self.parts, self.columns = session, parts, list(parts[0].columns)
        self.rdd = SimpleNamespace(getNumPartitions=lambda: len(self.parts))

    def persist(self):
        return self

    def repartitionByRange(self, n, column):
        (table,) = self.parts
        ends = np.linspace(0, len(table), n + 1).astype(int)
        order = np.argsort(table[column].to_numpy(), kind="stable")
        return Frame(self.sparkSession, [table.iloc[order[a:b]] for a, b in pairwise(ends)])

    def mapInArrow(self, run, schema):
        def collect():
            rows = []
            for k in reversed(range(len(self.parts))):
                self.place.set(k)
                batches = pa.Table.from_pandas(self.parts[k], preserve_index=False).to_batches(max_chunksize=50)
                rows += [row for batch in run(iter(batches)) for row in batch.to_pylist()]
            return [SimpleNamespace(**row) for row in rows]

        return SimpleNamespace(collect=collect)


class Session:
    """A session, and what makes it."""

    sparkContext = SimpleNamespace(broadcast=lambda value: SimpleNamespace(value=value))

    def master(self, *name):
        return self

    config = getOrCreate = stop = master

    def createDataFrame(self, table):
        return Frame(self, [table])


def stand_in(engine):
    """The modules that a page imports from an engine."""
    if engine == "ray":
        return {"ray": Ray("ray")}
    pyspark, sql = ModuleType("pyspark"), ModuleType("pyspark.sql")
    pyspark.TaskContext = SimpleNamespace(get=lambda: SimpleNamespace(partitionId=Frame.place.get))
    sql.SparkSession = SimpleNamespace(builder=Session())
    return {"pyspark": pyspark, "pyspark.sql": sql}


@pytest.mark.parametrize("engine", PAGES)
def test_the_page_runs_on_a_stand_in(engine, monkeypatch):
    for name, module in stand_in(engine).items():
        monkeypatch.setitem(sys.modules, name, module)
    run_page(engine)
