"""Architectures as plain data: one record, lossless converters, published cells, drawings.

>>> from idarts.arch import nas_bench_201, parse
>>> nas_bench_201.to_index(parse("|none~0|+|none~0|none~1|+|none~0|none~1|none~2|"))
1651
"""

from idarts.arch import darts, nas_bench_1shot1, nas_bench_101, nas_bench_201, registry
from idarts.arch.drawing import draw
from idarts.arch.forms import as_text, convert, parse
from idarts.arch.json_form import from_data, from_json, to_data, to_json
from idarts.arch.record import Architecture, Cell, Edge
from idarts.arch.sampling import sample

__all__ = [
    "Architecture",
    "Cell",
    "Edge",
    "as_text",
    "convert",
    "darts",
    "draw",
    "from_data",
    "from_json",
    "nas_bench_1shot1",
    "nas_bench_101",
    "nas_bench_201",
    "parse",
    "registry",
    "sample",
    "to_data",
    "to_json",
]
