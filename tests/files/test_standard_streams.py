"""Standard output: all that is written there arrives, or ends in one error."""

import io

import pytest

from onlinear.files import standard_streams


class Disk(io.RawIOBase):
    """Takes 5 bytes at a time, and 20 in all, as a disk with little room does."""

    def __init__(self):
        self.taken = b""

    def writable(self):
        return True

    def write(self, data):
        if len(self.taken) == 20:
            raise OSError(28, "No space left on device")
        part = bytes(data[: min(5, 20 - len(self.taken))])
        self.taken += part
        return len(part)


def test_standard_output_that_is_not_buffered_takes_all_or_fails_once():
    disk = Disk()
    unbuffered = io.TextIOWrapper(disk, "utf-8", write_through=True)
    out = standard_streams.whole_or_named(unbuffered)
    out.write("é23456789\n")
    out.flush()
    assert disk.taken == "é23456789\n".encode()
    with pytest.raises(OSError, match=r"^\[Errno 28\] No space left on device: 'standard output'$"):
        standard_streams.lines_to(out)("x" * 10_000)
    out.close()  # what it still holds leads nowhere
    assert len(disk.taken) == 20
