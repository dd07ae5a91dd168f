"""Charts: round ticks inside the frame, text inside the drawing, lines where the numbers are."""

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idarts.pages.chart import POINTS, WIDTH, Curve, Dots, Scale, banded, chart, scale, thinned
from idarts.pages.chart.frame import LETTER

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
SERIES = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=8)


def drawn(values, x=None, **options):
    x = np.arange(1.0, len(values) + 1) if x is None else np.array(x, dtype=float)
    return chart("a", "Any", ("rounds", ""), [thinned("a", x, np.array(values, dtype=float))], **options)


def points(made, kind="line"):
    paths = re.findall(rf'<path class="{kind} s1" d="([^"]+)"', made.svg)
    return [[tuple(map(float, pair)) for pair in re.findall(r"(-?[\d.]+) (-?[\d.]+)", path)] for path in paths]


def texts(svg):
    """Left, right, height and content of every text, as wide as its letters may be."""
    for x, y, anchor, length, content in re.findall(
        r'<text x="([^"]+)" y="([^"]+)"(?: text-anchor="(\w+)")?(?: textLength="(\d+)"[^>]*)?>([^<]*)', svg
    ):
        width = float(length) if length else LETTER * len(unescape(content))
        left = float(x) - width * {"": 0, "middle": 0.5, "end": 1}[anchor]
        yield left, left + width, float(y), content


@settings(deadline=None, max_examples=150)
@given(SERIES, st.booleans(), st.sampled_from([False, True, None]), st.none() | NUMBERS, st.booleans())
def test_any_numbers_make_a_drawing_with_everything_inside(pairs, log_x, log_y, limit, percent):
    x, y = np.array(pairs).T
    limit = limit if limit is not None and 1e-200 < abs(limit) < 1e29 and (limit > 0 or not log_y) else None
    made = chart("a", "Any", ("x", "y"), [Curve("a", x, y)], log_x=log_x, log_y=log_y, limit=limit, percent=percent)
    assert not re.search(r"\b(nan|inf)\b", made.svg)
    height = float(re.search(r'viewBox="0 0 \d+ (\d+)"', made.svg)[1])
    for left, right, bottom, content in texts(made.svg):
        assert -0.1 <= left <= right <= WIDTH + 0.1, content
        assert 10 < bottom <= height - 4
    for place in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", made.svg):
        assert 0 <= float(place[0]) <= WIDTH
        assert 0 <= float(place[1]) <= height


@settings(deadline=None)
@given(st.lists(st.floats(-1e29, 1e29), min_size=1), st.booleans(), st.integers(3, 8), st.floats(0, 0.1))
def test_ticks_are_distinct_round_numbers_inside_the_frame(values, log, most, room):
    values = np.where(np.abs(values) < 1e-300, 0, values)
    values = np.abs(values[values != 0]) if log else values
    made = scale(values, log=log, room=room)
    ticks = made.ticks(most)
    assert 1 <= len(ticks) <= 3 * most
    places = made.place(np.array([tick.value for tick in ticks]))
    assert ((places > -1e-3) & (places < 1 + 1e-3)).all()
    assert len({tick.text for tick in ticks}) == len(ticks)
    assert (made.place(values) > -1e-9).all()
    assert (made.place(values) < 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("given", "most", "shown"),
    [
        (Scale(0, 1.05), 6, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (Scale(0, 0.8, percent=True), 4, ["0 %", "20 %", "40 %", "60 %", "80 %"]),
        (Scale(1, 3, whole=True), 8, ["1", "2", "3"]),
        (Scale(1_000_000, 1_000_004), 4, [f"1,000,00{n}" for n in range(5)]),
        (Scale(-2e-9, 2e-9), 4, ["−2×10⁻⁹", "−10⁻⁹", "0", "10⁻⁹", "2×10⁻⁹"]),
        (Scale(-1, 1), 4, ["−1.0", "−0.5", "0", "0.5", "1.0"]),
        (Scale(0.001, 200, logarithmic=True), 6, ["0.001", "0.01", "0.1", "1", "10", "100"]),
        (Scale(2, 50, logarithmic=True), 6, ["2", "5", "10", "20", "50"]),
        (Scale(1e-12, 1, logarithmic=True), 4, ["10⁻¹²", "10⁻⁸", "10⁻⁴", "10⁰"]),
    ],
)
def test_ticks_by_example(given, most, shown):
    assert [tick.text for tick in given.ticks(most)] == shown


def test_long_numbers_push_the_axis_aside_instead_of_being_clipped():
    made = drawn([123_456.7, 123_456.9], x=[0, 1_000_000])
    widest = max(right - left for left, right, _, _ in texts(made.svg))
    assert widest > 60
    assert min(left for left, *_ in texts(made.svg)) >= 0
    assert min(x for x, _ in points(made)[0]) > 60


def test_a_gap_splits_the_line_and_a_lone_point_is_a_dot():
    made = drawn([1.0, 2.0, np.nan, 4.0, np.nan], ends=True)
    assert [len(piece) for piece in points(made)] == [2, 1]
    assert "h0" in made.svg
    assert made.legend == [("a", "4")]
    joined = thinned("a", np.arange(4.0), np.array([1, np.nan, np.nan, 2]), gaps=False)
    assert [piece.tolist() for piece in joined.pieces()] == [[0, 1]]


def test_points_lie_where_their_values_are():
    made = drawn([0.0, 5.0, 10.0], x=[1, 2, 3])
    (line,) = points(made)
    assert line[1][0] == pytest.approx((line[0][0] + line[2][0]) / 2, abs=0.1)
    assert line[1][1] == pytest.approx((line[0][1] + line[2][1]) / 2, abs=0.1)
    assert line[2][1] < line[0][1]  # larger is higher
    (decades,) = points(drawn([0.01, 0.1, 1.0], log_y=True))
    assert decades[1][1] == pytest.approx((decades[0][1] + decades[2][1]) / 2, abs=0.1)


def test_long_series_are_thinned_to_means_between_extremes():
    made = drawn(np.tile([0.0, 1.0], 6000))
    (line,) = points(made)
    (band,) = points(made, "band")
    assert len(line) == POINTS
    assert len({y for _, y in line}) == 1
    assert len({y for _, y in band}) == 2
    assert len(made.svg) < 12_000


@pytest.mark.parametrize(
    ("values", "logarithmic"), [([1.0, 900], False), ([1.0, 1100], True), ([0.0, 1100], False), ([-1.0, 1e9], False)]
)
def test_a_wide_range_is_logarithmic_if_nobody_decides(values, logarithmic):
    made = drawn(values, log_y=None, reading="Read it.")
    assert made.y.logarithmic == logarithmic
    assert made.reading == ("Read it. The vertical axis is logarithmic." if logarithmic else "Read it.")


def test_a_limit_is_inside_the_chart():
    made = drawn([0.2, 0.3], limit=1.0)
    assert made.y.high > 1
    assert made.svg.count('class="limit"') == 1


def test_no_numbers_make_a_chart_without_curves():
    made = drawn([np.nan, np.inf])
    assert made.curves == ()
    assert "no values" in made.svg


def test_a_band_below_zero_ends_on_a_logarithmic_axis():
    curve = banded("a", np.array([1.0, 2.0]), np.array([[0.1, 1.0], [2.0, 1.0]]))
    assert curve.low[0] < 0
    made = chart("a", "Error", ("K", "error"), [curve], log_y=True)
    assert made.y.low > 0
    assert len(points(made, "band")) == 1


def test_the_data_stay_beside_the_drawing():
    made = drawn([3.0, np.nan, 1.0], x=[1, 2, 3])
    (curve,) = made.curves
    assert curve.x.tolist() == [1, 2, 3]
    assert np.array_equal(curve.y, [3, np.nan, 1], equal_nan=True)


def test_a_file_is_whole_and_has_its_own_legend_and_colours():
    names = ["<b> & co", *(f"a rather long name of curve {place}" for place in range(7)), "x" * 90]
    curves = [Curve(name, np.arange(3.0), np.arange(3.0) + place) for place, name in enumerate(names)]
    made = chart("a", "Many <curves>", (f"gradient evaluations{'.' * 30}", "percent" * 20), curves)
    content = made.file().decode()
    root = ElementTree.fromstring(content)
    space = "{http://www.w3.org/2000/svg}"
    assert [text.text for text in root.iter(f"{space}text")][-len(names) :] == names
    assert "var(" not in content
    assert content.count(".line.s1 { stroke: #") == 2  # light and dark
    assert len(re.findall(r'<path class="line', content)) == 2 * len(names)
    height = float(root.get("viewBox").split()[3])
    for left, right, bottom, _ in texts(content):
        assert 0 <= left <= right <= WIDTH + 0.1
        assert bottom <= height
    assert "<b>" not in made.svg


def test_a_dot_for_each_seed_lies_where_its_value_is_and_covers_no_other():
    groups = {"a": [("1", 90.0), ("2", 90.0), ("3", 94.0)], "<b>": [("1", 92.0)], "none": []}
    made = Dots("seeds", "Test", "accuracy in percent", groups, "")
    dots = [tuple(map(float, one)) for one in re.findall(r'cx="([\d.]+)" cy="([\d.-]+)"', made.svg)]
    assert len(set(dots)) == 4
    (first, _), (second, _), (third, _), (middle, _) = dots
    assert first == second
    assert middle == pytest.approx((first + third) / 2, abs=0.11)
    assert "<title>a, seed 2: 90.00</title>" in made.svg
    assert made.table[1] == [["a", "1", "90.00"], ["a", "2", "90.00"], ["a", "3", "94.00"], ["<b>", "1", "92.00"]]
    ElementTree.fromstring(made.file())
    for left, right, *_ in texts(made.svg):
        assert -0.1 <= left <= right <= WIDTH + 0.1


def test_the_last_value_is_the_last_one_that_was_measured():
    values = np.zeros(10_000)
    values[-1] = 5.0
    assert drawn(values, ends=True).legend == [("a", "5")]


def test_a_static_table_has_rows_where_all_curves_have_values():
    x = np.arange(1.0, 101)
    now_and_then = np.where(x % 25 == 0, x, np.nan)
    made = chart("a", "Any", ("rounds", ""), [Curve("all", x, x), thinned("some", x, now_and_then, gaps=False)])
    header, rows, count = made.table
    assert header == ["rounds", "all", "some"]
    assert rows == [[number] * 3 for number in ("25", "50", "75", "100")]
    assert count == 100
