// A chart drawn from its data, as chart/drawing.py draws it; `range` is the part of the horizontal axis to show.
const WIDTH = 400, HEIGHT = 224, LETTER = 8.3, GAP = 7, NAME = 18, POINTS = 200, DOTS = 12, COLOURS = 6;
const SVG = "http://www.w3.org/2000/svg";

// Elements are made one by one, and texts are texts: no name in the data is ever read as HTML.
function element(tag, attributes = {}, ...children) {
  const made = tag.includes(":") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
  made.append(...children);
  return made;
}

const one = (value) => value.toFixed(1);
const finite = (value) => value !== null && Number.isFinite(value);
const colour = (index) => `s${index % COLOURS + 1}`;

function layOut(data, range) {
  const curves = data.curves.map((curve) => range ? cut(curve, data, range) : curve);
  const y = fit([...(finite(data.limit) ? [data.limit] : []), ...curves.flatMap(heights)].filter(finite),
    data.y.logarithmic, 0.05, data.y.percent, data.y.whole);
  const all = fit(data.curves.flatMap((curve) => curve.x), data.x.logarithmic, 0, data.x.percent, data.x.whole);
  const x = range ? { ...all, low: range[0], high: range[1] } : all;
  const yTicks = ticks(y, 6), named = data.axes.map((name) => name ? NAME : 0);
  let left = Math.max(44, widest(yTicks) + GAP + 2);
  const fitting = [8, 6, 5, 4].map((most) => ticks(x, most))
    .find((made) => (widest(made) + 10) * made.length <= WIDTH - left);
  const xTicks = fitting || ticks(x, 3), half = widest(xTicks) / 2 + 2;
  left = Math.max(left, half);
  const right = WIDTH - Math.max(12, half), top = 10 + named[1], bottom = top + HEIGHT - 36;
  return {
    curves: curves.map((curve) => thin(curve, POINTS)), x, y, xTicks, yTicks, left, right, top, bottom,
    height: bottom + 26 + named[0],
    across: (value) => left + place(x, value) * (right - left),
    down: (value) => bottom - place(y, value) * (bottom - top),
  };
}

const widest = (made) => Math.max(0, ...made.map((tick) => LETTER * tick.text.length));
const heights = (curve) => [...curve.y, ...(curve.low || []), ...(curve.high || [])];

// The part of a curve inside a range, with points at its ends where a line crosses them.
function cut(curve, data, [low, high]) {
  const made = { ...curve, x: [], y: [], ...(curve.low && { low: [], high: [] }) };
  const sides = curve.low ? ["y", "low", "high"] : ["y"];
  const add = (x, from, share) => {
    made.x.push(x);
    sides.forEach((side) => {
      const start = curve[side][from], end = share ? curve[side][from + 1] : start;
      if (!finite(start) || !finite(end)) return made[side].push(null);
      const [a, b] = [start, end].map((value) => onScale(data.y, value));
      made[side].push(data.y.logarithmic ? 10 ** (a + share * (b - a)) : a + share * (b - a));
    });
  };
  curve.x.forEach((x, index) => {
    if (x >= low && x <= high) add(x, index, 0);
    const next = curve.x[index + 1];
    [low, high].filter((edge) => x < edge && edge < next).forEach((edge) => {
      const [a, b, at] = [x, next, edge].map((value) => onScale(data.x, value));
      add(edge, index, (at - a) / (b - a));
    });
  });
  return made;
}

// Means of neighbours, and a band that keeps all extremes.
function thin(curve, most) {
  const count = curve.x.length;
  if (count <= most) return curve;
  const made = { ...curve, x: [], y: [], low: [], high: [], each: Math.ceil((curve.each || 1) * count / most) };
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  for (let part = 0, start = 0; part < most; part++) {
    const end = start + Math.floor(count / most) + (part < count % most ? 1 : 0);
    const known = (side) => side.slice(start, end).filter((_, index) => finite(curve.y[start + index]));
    const empty = !known(curve.y).length;
    made.x.push(mean(curve.x.slice(start, end)));
    made.y.push(empty ? null : mean(known(curve.y)));
    made.low.push(empty ? null : Math.min(...known(curve.low || curve.y)));
    made.high.push(empty ? null : Math.max(...known(curve.high || curve.y)));
    start = end;
  }
  return made;
}

function drawChart(data, range) {
  const frame = layOut(data, range);
  const svg = element("svg:svg", { viewBox: `0 0 ${WIDTH} ${frame.height.toFixed(0)}` });
  const path = (kind, d) => svg.append(element("svg:path", { class: kind, d }));
  const text = (x, y, content, anchor, most = WIDTH) => svg.append(element("svg:text", {
    x: one(x), y: one(y), ...(anchor && { "text-anchor": anchor }),
    ...(LETTER * content.length > most && { textLength: most, lengthAdjust: "spacingAndGlyphs" }),
  }, content));
  frame.yTicks.forEach((tick) => {
    path("grid", `M${one(frame.left)} ${one(frame.down(tick.value))}H${one(frame.right)}`);
    text(frame.left - GAP, frame.down(tick.value) + 4, tick.text, "end");
  });
  frame.xTicks.forEach((tick) => {
    path("axis", `M${one(frame.across(tick.value))} ${one(frame.bottom)}v4`);
    text(frame.across(tick.value), frame.bottom + 18, tick.text, "middle");
  });
  path("axis", `M${one(frame.left)} ${one(frame.bottom)}H${one(frame.right)}`);
  if (data.axes[0]) {
    const room = WIDTH - Math.min(LETTER * data.axes[0].length, WIDTH) / 2;
    text(Math.min((frame.left + frame.right) / 2, room), frame.bottom + 18 + NAME, data.axes[0], "middle");
  }
  if (data.axes[1]) text(4, 14, data.axes[1], "", WIDTH - 8);
  if (finite(data.limit)) path("limit", `M${one(frame.left)} ${one(frame.down(data.limit))}H${one(frame.right)}`);
  frame.curves.forEach((curve, index) => drawCurve(svg, path, frame, curve, colour(index)));
  return { svg, frame };
}

function drawCurve(svg, path, frame, curve, kind) {
  const at = (side, index) => `${one(frame.across(curve.x[index]))} ${one(frame.down(side[index]))}`;
  const dots = curve.y.filter(finite).length <= DOTS;
  pieces(curve).forEach((piece) => {
    const points = piece.map((index) => at(curve.y, index));
    if (curve.low) {
      const [low, high] = [curve.low, curve.high].map((side) => piece.map((index) => at(side, index)));
      if (low.join() !== high.join()) path(`band ${kind}`, `M${[...low, ...high.reverse()].join("L")}Z`);
    }
    path(`line ${kind}`, `M${points.join("L")}${points.length === 1 ? "h0" : ""}`);
    if (dots) points.map((point) => point.split(" ")).forEach(([cx, cy]) =>
      svg.append(element("svg:circle", { class: `dot ${kind}`, cx, cy, r: 3 })));
  });
}

function pieces(curve) {
  const made = [];
  curve.y.forEach((value, index) => {
    if (!finite(value)) return;
    if (index && finite(curve.y[index - 1]) && made.length) made[made.length - 1].push(index);
    else made.push([index]);
  });
  return made;
}
