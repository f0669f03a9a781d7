// One Python session: the cells of a lesson, in Pyodide. Messages in: {cell, code}; out: {ready} | {failed} | {cell, ok, said, html}.
const checker = new URL("checker/", import.meta.url), own = new URL("lessons/", import.meta.url);

const PROGRAM = `
import ast, contextlib, io, json, sys, traceback
sys.path.insert(0, "/session")
names = {"__name__": "__main__"}

def run(code):
    """Like a cell of a notebook: what it prints, and its last expression."""
    out, html, ok = io.StringIO(), "", True
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            tree = ast.parse(code, "cell")
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
            if hasattr(value, "_repr_html_"):
                html = value._repr_html_()
            elif value is not None:
                print(repr(value))
        except BaseException as error:
            ok = False
            lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == "cell"]
            print(*traceback.format_exception_only(error), sep="", end="")
            if lines:
                print("in line", lines[-1], "of this cell")
    return json.dumps([ok, out.getvalue(), html])
`;

async function solver() {
  const { default: load } = await import(new URL("highs.mjs", own));
  return load({ locateFile: (name) => new URL(name, own).href });
}

async function start() {
  const { loadPyodide } = await import(new URL("pyodide.mjs", checker));
  const [python, highs, answer] = await Promise.all([
    loadPyodide({ indexURL: checker.href }), solver(), fetch(new URL("session.zip", own)),
  ]);
  if (!answer.ok) throw new Error("the package's files are not there");
  python.unpackArchive(await answer.arrayBuffer(), "zip", { extractDir: "/session" });
  python.registerJsModule("highs_in_browser", {
    solve: (text) => JSON.stringify(highs.solve(text, { presolve: "off", output_flag: false })),
  });
  python.runPython(PROGRAM);
  return python;
}

const started = start();
started.then(
  (python) => postMessage({ ready: python.runPython("sys.version.split()[0]") }),
  (error) => postMessage({ failed: String(error.message || error) }),
);

onmessage = async ({ data: { cell, code } }) => {
  const python = await started;
  try {
    const run = python.globals.get("run");
    const [ok, said, html] = JSON.parse(run(code));
    run.destroy();
    postMessage({ cell, ok, said, html });
  } catch (error) {
    postMessage({ cell, ok: false, said: String(error.message || error).trim().split("\n").pop(), html: "" });
  }
};
