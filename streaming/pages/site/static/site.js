// Conveniences, none of them needed: commands are copied by a button, "/" leads to the search, and the view is asked for again while
// somebody looks at it.
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

// "/" leads to the search, unless somebody writes.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  event.preventDefault();
  document.getElementById("search").focus();
});

const pause = document.querySelector(".pause");
let paused = false;
pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Updates are paused" : "Pause updates";
});

const seconds = Number(document.body.dataset.refresh);
if (seconds > 0) setInterval(() => {
  const selecting = getSelection().type === "Range";
  if (!paused && !selecting && !document.hidden) refresh();
}, 1000 * seconds);

async function refresh() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!answer.ok) throw new Error(`the job answers ${answer.status}`);
    show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    document.body.classList.remove("stale");
  } catch (error) {
    const asOf = document.getElementById("as-of");
    if (!document.body.classList.contains("stale")) asOf.append(` Not updated since: ${error.message}.`);
    document.body.classList.add("stale");
  }
}

function show(found) {
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
