"""Line charts with bands, dots, limits and logarithmic axes: as data, inside pages, and as SVG files."""

from idarts.pages.chart.curve import KEPT, POINTS, Curve, banded, thinned
from idarts.pages.chart.dots import Dots
from idarts.pages.chart.drawing import Chart, chart, plain
from idarts.pages.chart.frame import WIDTH, frame
from idarts.pages.chart.scale import Scale, scale

__all__ = [
    "KEPT",
    "POINTS",
    "WIDTH",
    "Chart",
    "Curve",
    "Dots",
    "Scale",
    "banded",
    "chart",
    "frame",
    "plain",
    "scale",
    "thinned",
]
