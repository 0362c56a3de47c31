// Conveniences, none of them needed: commands are copied by a button, "/" leads to the search, the view is asked for again while a person
// looks at it, and what is no longer current says so.
"use strict";
document.documentElement.classList.add("js");

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copies]");
  if (!button) return;
  const code = document.getElementById(button.dataset.copies);
  button.textContent = (await copy(code)) ? "Copied" : "Selected";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

async function copy(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch {
    // Without TLS browsers give no clipboard but on loopback: the command is selected, and copied the old way if that is allowed.
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}

// "/" leads to the search, unless the user is typing.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  document.getElementById("search").focus();
});

const LIMIT_MS = 5000;
const interval = () => 1000 * Number(document.body.dataset.refresh);  // shorter while the job starts

// The age is counted from the job's own time, by a clock that no user can set: the time of day in the browser may be wrong.
const here = { at: Number(document.body.dataset.at), since: performance.getEntriesByType("navigation")[0]?.responseStart ?? 0 };
let failed = "", asking = false;  // why the last attempt failed, "" if it did not

const pause = document.querySelector(".pause");
let paused = false;
pause.hidden = false;  // without scripts nothing is updated
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Updates are paused" : "Pause updates";
  if (paused) tell(); else refresh();
});

const selecting = () => getSelection().type === "Range";

function goOn() {
  if (!paused && !selecting() && !document.hidden) refresh();
  setTimeout(goOn, interval());
}
function lookNow() {
  if (document.hidden) return;
  tell();
  if (!paused && !selecting()) refresh();
}
setTimeout(goOn, interval());
setInterval(tell, 1000);
document.addEventListener("visibilitychange", lookNow);
addEventListener("pageshow", (event) => { if (event.persisted) lookNow(); });

async function refresh() {
  if (asking) return;
  asking = true;
  let found = null, why = "the job does not answer";
  try {
    const asked = { headers: { Accept: "text/html" }, redirect: "error", cache: "no-store", signal: AbortSignal.timeout?.(LIMIT_MS) };
    const answer = await fetch(location.href, asked);
    found = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!found.body.dataset.at) {
      why = answer.ok ? "something else answers in place of the job" : `the answer is an error, ${answer.status},`;
      found = null;
    }
  } catch {
    found = null;
  }
  asking = false;
  failed = found ? "" : why;
  if (found) {
    here.at = Number(found.body.dataset.at);
    here.since = performance.now();
    show(found);
  }
  tell();
}

// What is not current has a band above everything. Its words are read aloud once; only the age beside them goes on.
function tell() {
  const age = performance.now() - here.since, late = age > interval() + LIMIT_MS, held = paused || selecting();
  const at = `${new Date(here.at).toISOString().slice(11, 19)}Z`;
  const why = failed || (late && !held ? "nothing was heard of the job" : "");
  let words = document.body.dataset.notCurrent, aged = true, rest = "";
  if (why) [words, rest] = [`Not current: ${why} since ${at}`, "What is below was so then."];
  else if (paused) words = `Updates are paused: this was so at ${at}`;
  else if (late) words = `Not updated while text is selected: this was so at ${at}`;
  else aged = false;
  write("band-words", words);
  write("band-age", aged ? `, ${duration(age / 1000)} ago. ` : "");
  write("band-rest", rest);
  document.getElementById("band").classList.toggle("on", words !== "");
  document.body.classList.toggle("old", Boolean(why || document.body.dataset.notCurrent));
}

function write(id, text) {
  const element = document.getElementById(id);
  if (element.textContent !== text) element.textContent = text;
}

// As format_duration writes it.
function duration(seconds) {
  const counts = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  let rest = Math.round(seconds);
  const all = counts.map(([unit, length]) => { const count = Math.floor(rest / length); rest -= count * length; return [count, unit]; });
  const first = all.findIndex(([count]) => count);
  return first < 0 ? "0s" : all.slice(first, first + 2).filter(([count]) => count).map(([count, unit]) => count + unit).join(" ");
}

function show(found) {
  const { view, notCurrent, refresh } = found.body.dataset;
  if (view !== document.body.dataset.view) {  // what was here is gone, or is known by now
    document.querySelector("main").replaceWith(document.importNode(found.querySelector("main"), true));
  }
  Object.assign(document.body.dataset, { view, notCurrent, refresh });
  const focus = place(document.activeElement);
  const unfolded = [...document.querySelectorAll("details[open]")].map((each) => each.id);
  for (const id of ["verdict", "verdict-box"]) same(id, found);
  for (const old of document.querySelectorAll("[data-live]")) {
    const fresh = found.getElementById(old.id);
    if (fresh && fresh.outerHTML !== old.outerHTML) old.replaceWith(document.importNode(fresh, true));
  }
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  document.title = found.title;
  if (focus) again(focus);
  document.dispatchEvent(new Event("shown"));
}

// The verdict is read aloud when it changes, so its element stays and only its words are changed.
function same(id, found) {
  const old = document.getElementById(id), fresh = found.getElementById(id);
  if (!old || !fresh) return;
  if (old.className !== fresh.className) old.className = fresh.className;
  if (old.hasAttribute("aria-live") && old.textContent !== fresh.textContent) old.replaceChildren(...fresh.cloneNode(true).childNodes);
}

function place(element) {
  const live = element?.closest("[data-live]");
  if (!live) return null;
  return { id: element.id, href: element.getAttribute("href"), copies: element.dataset.copies };
}

function again({ id, href, copies }) {
  if (document.activeElement !== document.body) return;
  const wanted = (each) => (id ? each.id === id : href ? each.getAttribute("href") === href : copies && each.dataset.copies === copies);
  [...document.querySelectorAll("main a, main button, main [tabindex]")].find(wanted)?.focus({ preventScroll: true });
}
