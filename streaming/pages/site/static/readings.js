// What a chart shows at one time: under the pointer, or where the arrow keys lead from its newest point. The texts come with the chart.
"use strict";
const [reading, line, words] = ["div", "i", "output"].map((name) => document.createElement(name));
reading.className = "reading";
reading.append(line, words);
let shown = { chart: "", back: 0 };  // how many points before the newest one

const pointsOf = (chart) => chart.dataset.points.split("|");
const chartAt = (element) => element?.closest?.("[data-points]");

function read(chart, back) {
  const points = pointsOf(chart), last = points.length - 1;
  shown = { chart: chart.id, back: Math.min(last, Math.max(0, back)) };
  const at = last - shown.back;
  if (words.textContent !== points[at]) words.textContent = points[at];
  line.style.left = `${100 * at / last}%`;
  if (reading.parentElement !== chart.parentElement) chart.parentElement.append(reading);
}
function readAgain(chart) {
  read(chart, shown.chart === chart.id ? shown.back : 0);
}
function readFocused() {
  const chart = chartAt(document.activeElement);
  if (chart) readAgain(chart); else unread();
}
function unread() {
  reading.remove();
  shown = { chart: "", back: 0 };
}

for (const kind of ["pointermove", "pointerdown"]) {
  document.addEventListener(kind, (event) => {
    const chart = chartAt(event.target);
    if (!chart) return readFocused();
    const box = chart.getBoundingClientRect(), last = pointsOf(chart).length - 1;
    read(chart, last - Math.round(last * (event.clientX - box.left) / box.width));
  });
}
document.addEventListener("focusin", readFocused);
document.addEventListener("keydown", (event) => {
  const chart = chartAt(document.activeElement);
  if (!chart || event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { ArrowLeft: shown.back + 1, ArrowRight: shown.back - 1, Home: Infinity, End: 0, Escape: -1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  if (event.key === "Escape") unread(); else read(chart, to);
});
// A chart that was brought up to date is another element.
document.addEventListener("shown", () => {
  const chart = shown.chart && document.getElementById(shown.chart);
  if (chart) readAgain(chart); else unread();
});
