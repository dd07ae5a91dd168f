// A heat map under the hands of a reader: all weights of a decision at a round, under the pointer and by arrow keys.
const MOVES = "Arrow keys move from round to round.";

class HeatMap {
  constructor(plot) {
    this.plot = plot;
    this.rounds = plot.closest(".decisions").dataset.rounds.split(" ").map(Number);
    this.weights = plot.dataset.weights.split(" ").map((packed) =>
      packed.match(/../g).map((pair) => parseInt(pair, 36) / 10));
    this.names = [...plot.parentElement.querySelector("ul").children].map((item) => item.textContent);
    this.readout = element("div", { class: "readout", hidden: "" });
    this.cursor = element("i", { class: "column", hidden: "" });
    plot.append(this.cursor, this.readout);
    const [first, last] = [this.rounds[0], this.rounds[this.rounds.length - 1]];
    const facts = { tabindex: 0, role: "slider", "aria-roledescription": "heat map", "aria-description": MOVES,
      "aria-label": plot.querySelector("img").alt, "aria-valuemin": first, "aria-valuemax": last };
    Object.entries(facts).forEach(([name, value]) => plot.setAttribute(name, value));
    this.describe(0);
    this.listen();
  }

  written(option, at) {
    const weight = this.weights[option][at];
    return finite(weight) ? `${weight.toFixed(1)} %` : "–";
  }

  describe(at) {
    const said = this.names.map((name, option) => `${name} ${this.written(option, at)}`);
    this.plot.setAttribute("aria-valuenow", this.rounds[at]);
    this.plot.setAttribute("aria-valuetext", `round ${this.rounds[at]}: ${said.join(", ")}`);
  }

  // Show the weights of a column; `undefined` hides them.
  read(at) {
    this.at = at;
    this.readout.hidden = this.cursor.hidden = at === undefined;
    if (at === undefined) return;
    this.describe(at);
    const now = this.weights.map((shares) => shares[at]), most = Math.max(...now.filter(finite));
    const rows = this.names.map((name, option) =>
      element(now[option] === most ? "b" : "span", {}, `${name} ${this.written(option, at)}`));
    this.readout.replaceChildren(element("div", { class: "where" }, `round ${withCommas(String(this.rounds[at]))}`),
      ...rows.map((row) => element("div", {}, row)));
    const width = this.plot.clientWidth, left = (at + 0.5) / this.rounds.length * width, room = this.readout.offsetWidth;
    this.cursor.style.left = `${left}px`;
    this.readout.style.left = `${Math.min(Math.max(left - room / 2, -width / 2), 1.5 * width - room)}px`;
  }

  listen() {
    this.plot.addEventListener("pointermove", (event) => {
      const box = this.plot.getBoundingClientRect(), share = (event.clientX - box.left) / box.width;
      this.read(Math.max(0, Math.min(this.rounds.length - 1, Math.floor(share * this.rounds.length))));
    });
    this.plot.addEventListener("pointerleave", () => this.read(undefined));
    this.plot.addEventListener("focus", () => { if (this.at === undefined) this.read(this.rounds.length - 1); });
    this.plot.addEventListener("blur", () => this.read(undefined));
    this.plot.addEventListener("keydown", (event) => {
      const last = this.rounds.length - 1, here = this.at === undefined ? last : this.at, page = Math.ceil(last / 10);
      const places = { ArrowLeft: here - 1, ArrowRight: here + 1, ArrowDown: here - 1, ArrowUp: here + 1,
        PageDown: here - page, PageUp: here + page, Home: 0, End: last };
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(places, event.key)) return;
      this.read(Math.max(0, Math.min(last, places[event.key])));
      event.preventDefault();
    });
  }
}

function startHeatMaps(root) {
  root.querySelectorAll(".plot[data-weights]").forEach((plot) => { plot.map ||= new HeatMap(plot); });
}
startHeatMaps(document);
