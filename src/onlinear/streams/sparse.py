"""The earlier name of the modules ``converted_writer`` and ``converted_reader``; imports of it keep working."""

from onlinear.streams.converted import is_converted as is_sparse
from onlinear.streams.converted_reader import Converted as Sparse
from onlinear.streams.converted_writer import write_converted as write_sparse

__all__ = ["Sparse", "is_sparse", "write_sparse"]
