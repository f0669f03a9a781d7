// Runs check.py, unchanged, in Pyodide. Messages in: {name, data, more}; out: {ready} | {failed} | {name, lines, ok, seconds}.
const folder = new URL("checker/", import.meta.url);

const PROGRAM = `
import contextlib, gzip, io, json, runpy, signal, sys
signal.setitimer = lambda *_: None  # browsers have no timer of processor time; it only serves --seconds
sys.path.insert(0, "/checkout/mapgap/evidence")
import check

def more(path):
    """The file with a bound that is better by one than what its proof proves."""
    data = check.read(path)
    writer = check.writer_of(data["instance"]["problem"])
    data["bound"] += 1 if writer.SENSE == "min" else -1
    path.write_bytes(gzip.compress(json.dumps(data).encode()))

def run(name, altered):
    path = check.Path("/files", name)
    if altered:
        more(path)
    sys.argv = ["check.py", str(path)]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            runpy.run_path("/checkout/mapgap/evidence/check.py", run_name="__main__")
            code = 1
        except SystemExit as end:
            code = end.code
    path.unlink()
    return json.dumps([code, said.getvalue().replace("/files/", "")])
`;

async function start() {
  const { loadPyodide } = await import(new URL("pyodide.mjs", folder));
  const python = await loadPyodide({ indexURL: folder.href });
  const checkout = await fetch(new URL("checkout.zip", folder));
  if (!checkout.ok) throw new Error("the checker's files are not there");
  python.unpackArchive(await checkout.arrayBuffer(), "zip", { extractDir: "/checkout" });
  python.FS.mkdirTree("/files");
  python.runPython(PROGRAM);
  return python;
}

const started = start();
started.then(
  (python) => postMessage({ ready: python.runPython("sys.version.split()[0]") }),
  (error) => postMessage({ failed: String(error.message || error) }),
);

onmessage = async ({ data: { name, data, more } }) => {
  const python = await started;
  const begun = performance.now();
  const safe = name.replace(/[^\w.@+-]/g, "_") || "file";
  try {
    python.FS.writeFile("/files/" + safe, new Uint8Array(data));
    const run = python.globals.get("run");
    const [code, said] = JSON.parse(run(safe, more));
    run.destroy();
    postMessage({ name, ok: code === 0, said: said.trim(), seconds: (performance.now() - begun) / 1000 });
  } catch (error) {
    postMessage({ name, ok: false, said: String(error.message || error).trim().split("\n").pop(), seconds: 0 });
  }
};
