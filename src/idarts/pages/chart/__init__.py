"""Line charts with bands, dots, limits and logarithmic axes: as data, inside pages, and as SVG files."""

from idarts.pages.chart.curve import POINTS, Curve, banded, thinned
from idarts.pages.chart.drawing import COLOURS, Chart, chart
from idarts.pages.chart.frame import HEIGHT, WIDTH, Frame, frame
from idarts.pages.chart.scale import Floats, Scale, Tick, scale

__all__ = [
    "COLOURS",
    "HEIGHT",
    "POINTS",
    "WIDTH",
    "Chart",
    "Curve",
    "Floats",
    "Frame",
    "Scale",
    "Tick",
    "banded",
    "chart",
    "frame",
    "scale",
    "thinned",
]
