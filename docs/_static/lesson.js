// Cells of a lesson run in the reader's browser: a button each, one session per page. Without JavaScript the page stays as it was.
(function () {
  "use strict";
  const NEEDS = "tag_needs-install";  // solvers, NumPy, charts: what no browser session has
  const cells = Array.from(document.querySelectorAll(".cell")).filter((each) => each.querySelector(".cell_input pre"));
  const base = new URL("..", document.baseURI);  // lessons lie one folder below the site
  let worker = null, ready = false, queue = [], done = new Set();

  const state = document.createElement("p");
  state.className = "lesson-state";
  state.setAttribute("role", "status");

  function say(text) { state.textContent = text; }

  function idle() {
    say(ready ? "Python is ready in this page. Code can be changed before it is run." :
      "The cells of this page run in your browser: Run fetches Python and the package (22 MB) from this site, once. Code can be changed before it is run.");
  }

  function stop(text) {
    if (worker) worker.terminate();
    worker = null; ready = false; queue = []; done = new Set();
    document.querySelectorAll(".ran.waiting").forEach((each) => each.remove());
    parts.forEach((part) => { if (part) part.button.textContent = "Run"; });
    if (text) say(text); else idle();
  }

  function next() {
    if (!queue.length) return idle();
    const part = parts[queue[0]];
    part.button.textContent = "Stop";
    if (ready) say("Running cell " + (queue[0] + 1) + " …");
    worker.postMessage({ cell: queue[0], code: part.code.innerText.replace(/\u00a0/g, " ") });
  }

  function heard({ data }) {
    if (data.failed) return stop("Python could not be started: " + data.failed + ".");
    if (data.ready) { ready = true; say("Running …"); return; }
    const part = parts[data.cell];
    part.button.textContent = "Run again";
    part.ran.className = "ran" + (data.ok ? "" : " failed");
    part.ran.replaceChildren();
    if (data.said) part.ran.append(Object.assign(document.createElement("pre"), { textContent: data.said }));
    if (data.html) part.ran.insertAdjacentHTML("beforeend", data.html);
    if (!data.said && !data.html) part.ran.append("Done, nothing to show.");
    queue.shift();
    if (data.ok) done.add(data.cell); else queue = [];
    next();
  }

  function run(place) {
    if (queue.length) return stop("Stopped. The session is empty again: a run begins with the first cell.");
    queue = parts.map((part, i) => i).filter((i) => parts[i] && (i === place || (i < place && !done.has(i) && !parts[i].optional)));
    queue.forEach((i) => {
      const part = parts[i];
      part.ran = part.ran || part.cell.appendChild(document.createElement("div"));
      part.ran.className = "ran waiting";
      part.ran.setAttribute("aria-live", "polite");
      part.ran.textContent = "Waiting …";
      part.cell.appendChild(part.ran);
    });
    if (!worker) {
      say("Loading Python …");
      worker = new Worker(new URL("_static/lesson_worker.mjs", base), { type: "module" });
      worker.onmessage = heard;
      worker.onerror = function () { stop("The worker could not start."); };
    }
    next();
  }

  const parts = cells.map(function (cell, place) {
    const code = cell.querySelector(".cell_input pre");
    const line = document.createElement("p");
    line.className = "tools";
    code.closest(".cell_input").after(line);
    if (cell.classList.contains(NEEDS)) {
      line.append(Object.assign(document.createElement("small"), { textContent: "Needs an installation: not run in the browser." }));
      return null;
    }
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Run" });
    button.setAttribute("aria-label", "Run cell " + (place + 1));
    line.append(button);
    code.contentEditable = "plaintext-only";
    code.spellcheck = false;
    code.setAttribute("role", "textbox");
    code.setAttribute("aria-multiline", "true");
    code.setAttribute("aria-label", "Code of cell " + (place + 1));
    code.addEventListener("input", () => done.delete(place));
    code.addEventListener("keydown", function (event) {
      if (event.key === "Enter" && event.shiftKey) { event.preventDefault(); run(place); }
    });
    button.addEventListener("click", () => run(place));
    return { cell, code, button, ran: null, optional: cell.classList.contains("tag_hide-cell") };
  });

  const title = document.querySelector("article h1");
  if (!title) return;
  title.after(state);
  if (location.protocol === "file:") {
    parts.forEach((part) => { if (part) part.button.disabled = true; });
    return say("Browsers run Python only in pages that come from a server: in the folder of the site, python3 -m http.server.");
  }
  fetch(new URL("_static/lessons/session.zip", base), { method: "HEAD" }).then(function (answer) {
    if (answer.ok) return idle();
    parts.forEach((part) => { if (part) part.button.disabled = true; });
    say("This copy of the site was built without Python for the browser; the cells run where mapgap is installed.");
  });
})();
