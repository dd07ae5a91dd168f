// A chart under the hands of a reader: values under the pointer and by arrow keys, zoom, and all values as a table.
// Without this script a page shows the same drawing and a shorter table.
const NEAR = 9, DRAG = 8, NARROWEST = 2; // pixels of the drawing, and points that a zoom keeps at least
const KEYS = "Arrow keys move from point to point, plus and minus zoom, 0 shows all.";

class Figure {
  constructor(figure) {
    this.figure = figure;
    this.plot = figure.querySelector(".plot");
    this.values = figure.querySelector(".values");
    this.readout = element("div", { class: "readout", hidden: "" });
    this.buttons = element("div", { class: "zoom", role: "group" });
    [["−", "Zoom out", () => this.zoom(2)], ["+", "Zoom in", () => this.zoom(0.5)], ["all", "Show all", () => this.show(null)]]
      .forEach(([sign, title, act]) => {
        const button = element("button", { type: "button", title, "aria-label": title }, sign);
        button.addEventListener("click", act);
        this.buttons.append(button);
      });
    figure.querySelector("figcaption").append(this.buttons);
    this.svg = this.plot.querySelector("svg");
    const facts = { tabindex: 0, role: "slider", "aria-roledescription": "chart", "aria-description": KEYS };
    Object.entries(facts).forEach(([name, value]) => this.svg.setAttribute(name, value));
    this.plot.append(this.readout);
    this.listen();
    this.take(JSON.parse(figure.dataset.chart));
  }

  take(data) {
    this.data = data;
    const known = data.curves.flatMap((curve) => curve.x.filter((_, index) => finite(curve.y[index])));
    this.places = [...new Set(known)].sort((a, b) => a - b);
    this.buttons.setAttribute("aria-label", `Zoom of ${data.title}`);
    this.buttons.hidden = this.places.length <= NARROWEST;
    this.show(this.range || null);
  }

  // New data, e.g. of a run in progress; what is zoomed in stays so.
  update(data) {
    this.take(data);
    if (data.ends) this.figure.querySelectorAll(".legend b").forEach((last, index) => {
      const curve = data.curves[index];
      const end = curve && (finite(curve.end) ? curve.end : curve.y.filter(finite).pop());
      if (curve) last.textContent = data.y.percent ? `${(100 * end).toFixed(1)} %` : general(end, 3);
    });
  }

  show(range) {
    const first = this.places[0], last = this.places[this.places.length - 1];
    this.range = range && (range[0] > first || range[1] < last) ? range : null;
    const { svg, frame } = drawChart(this.data, this.range);
    this.frame = frame;
    this.mark = element("svg:g", { class: "mark" });
    this.svg.replaceChildren(...svg.childNodes, this.mark); // the element stays, and so does the focus
    const facts = { viewBox: svg.getAttribute("viewBox"), "aria-valuemin": frame.x.low, "aria-valuemax": frame.x.high };
    Object.entries(facts).forEach(([name, value]) => this.svg.setAttribute(name, value));
    this.buttons.querySelectorAll("button").forEach((button, index) => { button.disabled = index !== 1 && !this.range; });
    this.read(this.at);
    if (this.values.open) this.fillTable();
  }

  inside() {
    return this.places.filter((x) => !this.range || (x >= this.range[0] && x <= this.range[1]));
  }

  // Zoom about the point that is read, or about the middle.
  zoom(factor) {
    const { x } = this.frame, [low, high] = [x.low, x.high].map((end) => onScale(x, end));
    const middle = this.at === undefined ? (low + high) / 2 : onScale(x, this.at), half = factor * (high - low) / 2;
    const full = [this.places[0], this.places[this.places.length - 1]].map((end) => onScale(x, end));
    const start = Math.max(full[0], Math.min(middle - half, full[1] - 2 * half));
    this.select([start, Math.min(full[1], start + 2 * half)].map((end) => x.logarithmic ? 10 ** end : end));
  }

  select([low, high]) {
    if (this.places.filter((x) => x >= low && x <= high).length >= NARROWEST) this.show([low, high]);
  }

  // Show the values at a place, and say them; `undefined` hides them.
  read(at) {
    const places = this.inside();
    this.at = at === undefined || !places.length ? undefined : nearest(places, at, (x) => x);
    this.readout.hidden = this.at === undefined;
    this.mark.replaceChildren();
    const start = this.at === undefined ? places[0] : this.at;
    if (start === undefined) return;
    this.svg.setAttribute("aria-valuenow", start);
    this.svg.setAttribute("aria-valuetext", this.spoken(start));
    if (this.readout.hidden) return;
    const across = this.frame.across(this.at);
    this.mark.append(element("svg:path", { class: "cursor", d: `M${one(across)} ${one(this.frame.top)}V${one(this.frame.bottom)}` }));
    const rows = this.found(this.at).map(({ curve, index, kind }) => {
      const [cx, cy] = [this.frame.across(curve.x[index]), this.frame.down(curve.y[index])];
      this.mark.append(element("svg:circle", { class: `dot ${kind}`, cx: one(cx), cy: one(cy), r: 4 }));
      return element("div", {}, element("i", { class: `swatch ${kind}` }), `${curve.name} `,
        element("b", {}, written(curve.y[index], this.data.y.percent)), this.around(curve, index));
    });
    this.readout.replaceChildren(element("div", { class: "where" }, this.where(this.at)), ...rows);
    const width = this.svg.getBoundingClientRect().width, left = across / WIDTH * width, room = this.readout.offsetWidth;
    this.readout.style.left = `${Math.max(0, left + room + 12 < width ? left + 12 : left - room - 12)}px`;
  }

  // The point of each curve that is near a place.
  found(at) {
    const here = this.frame.across(at);
    return this.data.curves.flatMap((curve, place) => {
      const known = curve.x.map((_, index) => index).filter((index) => finite(curve.y[index]));
      if (!known.length) return [];
      const index = nearest(known, at, (one) => curve.x[one]);
      return Math.abs(this.frame.across(curve.x[index]) - here) <= NEAR ? [{ curve, index, kind: colour(place) }] : [];
    });
  }

  where(at) {
    const most = Math.max(...this.data.curves.map((curve) => curve.each || 1));
    if (most === 1) return `${this.data.axes[0] || "x"} ${general(at, 6)}`;
    const near = Math.abs(at) < 100 ? at : Math.round(at);
    return `${this.data.axes[0] || "x"} near ${general(near, 6)}, mean of ${withCommas(String(most))}`;
  }

  around(curve, index) {
    if (!curve.low || curve.low[index] === curve.high[index]) return "";
    const [low, high] = [curve.low, curve.high].map((side) => written(side[index], this.data.y.percent));
    return ` (${low} to ${high})`;
  }

  spoken(at) {
    const said = this.found(at).map(({ curve, index }) =>
      `${curve.name} ${written(curve.y[index], this.data.y.percent)}${this.around(curve, index)}`);
    return `${this.where(at)}: ${said.join(", ")}`;
  }

  // The table of all values inside the range; only when it is opened, because it may be long.
  fillTable() {
    const { curves, axes, y } = this.data;
    const known = curves.map((curve) => new Map(curve.x.map((x, index) => [x, index])));
    const head = element("tr", {}, ...[axes[0] || "x", ...curves.map((curve) => curve.name)]
      .map((name) => element("th", { scope: "col", class: "number" }, name)));
    const rows = this.inside().map((x) => element("tr", {}, element("th", { scope: "row", class: "number" }, general(x, 6)),
      ...curves.map((curve, place) => {
        const index = known[place].get(x), there = index !== undefined && finite(curve.y[index]);
        return element("td", { class: "number" }, there ? written(curve.y[index], y.percent) + this.around(curve, index) : "–");
      })));
    this.values.querySelector("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
    this.values.querySelector(".some").textContent =
      `${withCommas(String(rows.length))} points${this.range ? " of the part that is shown" : ""}.`;
  }

  listen() {
    const value = (event) => {
      const box = this.svg.getBoundingClientRect(), { left, right, x } = this.frame;
      const share = ((event.clientX - box.left) / box.width * WIDTH - left) / (right - left);
      return valueAt(x, Math.max(0, Math.min(1, share)));
    };
    let start = null;
    this.plot.addEventListener("pointerdown", (event) => {
      if (event.button || !event.isPrimary || this.buttons.hidden) return;
      start = { x: event.clientX, value: value(event) };
      this.plot.setPointerCapture(event.pointerId);
    });
    this.plot.addEventListener("pointermove", (event) => {
      this.read(value(event));
      if (!start || Math.abs(event.clientX - start.x) < DRAG) return;
      const [low, high] = [start.value, value(event)].map((end) => this.frame.across(end)).sort((a, b) => a - b);
      this.mark.append(element("svg:rect", { class: "selected", x: one(low), y: one(this.frame.top),
        width: one(high - low), height: one(this.frame.bottom - this.frame.top) }));
    });
    this.plot.addEventListener("pointerup", (event) => {
      if (start && Math.abs(event.clientX - start.x) >= DRAG)
        this.select([start.value, value(event)].sort((a, b) => a - b));
      start = null;
    });
    this.plot.addEventListener("pointercancel", () => { start = null; });
    this.plot.addEventListener("pointerleave", () => this.read(undefined));
    this.plot.addEventListener("dblclick", () => this.show(null));
    this.plot.addEventListener("focusin", () => { if (this.at === undefined) this.read(this.inside()[0]); });
    this.plot.addEventListener("focusout", () => this.read(undefined));
    this.plot.addEventListener("keydown", (event) => this.press(event));
    this.values.addEventListener("toggle", () => { if (this.values.open) this.fillTable(); });
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const places = this.inside(), here = Math.max(0, places.indexOf(this.at)), page = Math.ceil(places.length / 10);
    const move = (by) => this.read(places[Math.max(0, Math.min(places.length - 1, here + by))]);
    const acts = {
      ArrowLeft: () => move(-1), ArrowRight: () => move(1), ArrowDown: () => move(-1), ArrowUp: () => move(1),
      PageDown: () => move(-page), PageUp: () => move(page), Home: () => move(-places.length), End: () => move(places.length),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2), 0: () => this.show(null),
      Escape: () => this.show(null),
    };
    if (!Object.hasOwn(acts, event.key)) return;
    acts[event.key]();
    event.preventDefault();
  }
}

function nearest(items, goal, key) {
  return items.reduce((best, item) => Math.abs(key(item) - goal) < Math.abs(key(best) - goal) ? item : best);
}

// A live page reaches a chart by its element: figure.chart.update(data).
function startCharts(root) {
  root.querySelectorAll("figure[data-chart]").forEach((figure) => { figure.chart ||= new Figure(figure); });
}
startCharts(document);
