"""Line charts with bands, dots, limits and logarithmic axes: as data, inside pages, and as SVG files."""

from idarts.pages.chart.curve import POINTS, Curve, banded, thinned
from idarts.pages.chart.drawing import Chart, chart
from idarts.pages.chart.frame import WIDTH, frame
from idarts.pages.chart.scale import Scale, scale

__all__ = ["POINTS", "WIDTH", "Chart", "Curve", "Scale", "banded", "chart", "frame", "scale", "thinned"]
