// The page that checks certificates: what to check, and what was found. The checker itself runs in a worker.
(function () {
  "use strict";
  const box = document.getElementById("checker");
  const form = box.querySelector("form");
  const name = document.getElementById("checker-name");
  const files = document.getElementById("checker-files");
  const state = document.getElementById("checker-state");
  const verdicts = document.getElementById("checker-verdicts");
  const known = new Set(Array.from(box.querySelectorAll("datalist option"), (each) => each.value));
  const folder = new URL("_static/checker/", document.baseURI);
  let worker = null, python = null, waiting = 0;

  function say(text) { state.textContent = text; }

  function idle() {
    say(waiting ? "Checking " + waiting + (waiting > 1 ? " files …" : " file …") :
      python ? "Python " + python + " is ready in this page; nothing you check leaves it." :
      "Nothing is loaded yet: the first check fetches Python for the browser (13 MB) from this site.");
  }

  function give(text, data, more) {
    if (!worker) {
      worker = new Worker(new URL("_static/checker_worker.mjs", document.baseURI), { type: "module" });
      worker.onmessage = heard;
      worker.onerror = function () { heard({ data: { failed: "the worker could not start" } }); };
    }
    waiting += 1;
    if (python) idle(); else say("Loading Python …");
    worker.postMessage({ name: text, data: data, more: more }, [data]);
  }

  function heard({ data }) {
    if (data.failed) {
      worker = null;
      waiting = 0;
      say("Python could not be started: " + data.failed + ". In a checkout, python3 mapgap/evidence/check.py FILE does the same.");
      return;
    }
    if (data.ready) python = data.ready; else { waiting -= 1; show(data); }
    idle();
  }

  function show(found) {
    const line = document.createElement("li");
    const mark = document.createElement("strong");
    mark.className = "status " + (found.ok ? "certified" : "open");
    mark.textContent = found.ok ? "accepted" : "refused";
    const said = document.createElement("code");
    said.textContent = found.said;
    line.append(mark, " " + found.name + ", " + found.seconds.toFixed(2) + " s", document.createElement("br"), said);
    verdicts.prepend(line);
  }

  async function fetched(text, more) {
    if (!known.has(text)) return say("Expected the name of a certificate in the list, found " + JSON.stringify(text) + ".");
    const answer = await fetch(new URL(encodeURIComponent(text + ".cert.json.gz"), folder));
    if (!answer.ok) return say("The certificate could not be fetched: " + answer.status + ".");
    give(text + (more ? ", with a bound better by one" : ""), await answer.arrayBuffer(), more);
  }

  function own(list) {
    for (const file of list) file.arrayBuffer().then((data) => give(file.name, data, false));
  }

  if (location.protocol === "file:") {
    say("Browsers run Python only in pages that come from a server: in the folder of this page, python3 -m http.server.");
    return;
  }
  fetch(new URL("pyodide.asm.wasm", folder), { method: "HEAD" }).then(function (answer) {
    if (!answer.ok) {
      form.querySelectorAll("button, input").forEach((each) => { each.disabled = true; });
      return say("This copy of the site was built without Python for the browser, since npm was not there. " +
        "In a checkout, python3 mapgap/evidence/check.py FILE does the same.");
    }
    idle();
    const asked = new URLSearchParams(location.search).get("certificate");
    if (asked) { name.value = asked; fetched(asked, false); }
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); fetched(name.value.trim(), false); });
  document.getElementById("checker-more").addEventListener("click", () => fetched(name.value.trim(), true));
  files.addEventListener("change", function () { own(files.files); files.value = ""; });
  ["dragover", "drop"].forEach((kind) => box.addEventListener(kind, (event) => event.preventDefault()));
  box.addEventListener("drop", (event) => own(event.dataTransfer.files));
})();
