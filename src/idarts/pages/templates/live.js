// A page that follows runs: it asks its server for what is new, and changes only that.
const RETRY = 3000; // milliseconds, when the server does not answer
const LOST = "No answer from idarts watch: it has ended, or was started again. The page shows the last state it received.";
const page = document.body.dataset, held = new Map(); // texts that a reader is using; they change later
let timer = 0, asking = false;

const named = (key, name) => document.querySelector(`[data-${key}="${CSS.escape(name)}"]`);

async function ask(address) {
  const answer = await fetch(address, { cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return answer;
}

function inUse(part) {
  const selection = document.getSelection();
  if (part.contains(document.activeElement) || part.querySelector("details[open], .plot:hover")) return true;
  return !selection.isCollapsed && selection.containsNode(part, true);
}

function takeTexts(texts) {
  Object.entries(texts).forEach(([name, html]) => held.set(name, html));
  held.forEach((html, name) => {
    const part = named("part", name);
    if (part && inUse(part)) return;
    if (part) {
      part.innerHTML = html; // as escaped as the page itself, and the policy lets no script in
      startHeatMaps(part);
    }
    held.delete(name);
  });
}

// A curve keeps its points before `from`.
function joined(before, { from, ...news }) {
  const sides = ["x", "y", "low", "high"].filter((side) => news[side]);
  return { ...news, ...Object.fromEntries(sides.map((side) =>
    [side, [...(from ? before[side].slice(0, from) : []), ...news[side]]])) };
}

async function takeCharts(charts) {
  for (const [name, { head, curves }] of Object.entries(charts)) {
    const { chart } = named("name", name), { data } = chart;
    chart.update({ ...data, ...head, curves: curves.map((news, index) => joined(data.curves[index], news)) });
    await new Promise((next) => { setTimeout(next); }); // many charts must not hold up the reader's scrolling
  }
}

// The page as it is now; runs whose charts are the same stay as they are, with their zoom.
async function rebuild() {
  const text = await (await ask(location.href)).text(), focus = document.activeElement;
  const made = new DOMParser().parseFromString(text, "text/html");
  made.querySelectorAll("[data-key]").forEach((fresh) => {
    const known = named("key", fresh.dataset.key);
    if (known && known.dataset.shape === fresh.dataset.shape) fresh.replaceWith(document.adoptNode(known));
  });
  ["header", "main"].forEach((part) => document.querySelector(part).replaceWith(document.adoptNode(made.querySelector(part))));
  document.title = made.title;
  held.clear();
  startCharts(document);
  startHeatMaps(document);
  if (focus.isConnected) focus.focus({ preventScroll: true });
  return made.body.dataset.shape;
}

async function follow() {
  if (asking) return;
  let wait = RETRY;
  asking = true;
  try {
    const news = await (await ask(`news?after=${page.after}`)).json();
    // A rebuilt page is at least as new as these news; the next ones may repeat what it has.
    if (news.shape === page.shape) {
      takeTexts(news.texts || {});
      await takeCharts(news.charts || {});
    } else page.shape = await rebuild();
    page.after = news.after;
    wait = news.wait;
    document.querySelector(".lost").textContent = "";
  } catch {
    document.querySelector(".lost").textContent = LOST;
  }
  document.querySelector("nav.live").classList.toggle("gone", document.querySelector(".lost").textContent !== "");
  asking = false;
  if (!document.hidden) timer = setTimeout(follow, wait);
}

document.addEventListener("visibilitychange", () => {
  clearTimeout(timer);
  if (!document.hidden) follow();
});
timer = setTimeout(follow, 500);
