"""The recipes of the pages for other engines run as they stand, where these are installed."""

import re
import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ["ray", "pyspark"])
def test_the_page_runs(engine):
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    if engine == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    page = (DOCS / {"ray": "ray.md", "pyspark": "spark.md"}[engine]).read_text()
    exec("\n".join(re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)), {"__name__": "__main__"})
