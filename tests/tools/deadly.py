"""A shard whose reader is killed, for tests of workers that die in the middle of a round."""

import os
import signal
from pathlib import Path
from typing import NamedTuple

from onlinear.shards import Blocks


class Deadly(NamedTuple):
    """Rows whose reader is killed in the middle of the reading of this number, once."""

    name: str
    blocks: tuple
    log: Path
    reading: int

    def open(self):
        with self.log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(self.log.read_text().split()) == self.reading:
            os.kill(os.getpid(), signal.SIGKILL)
        return Blocks(self.name, self.blocks).open()
