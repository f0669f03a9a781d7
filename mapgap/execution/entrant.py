"""The side of a foreign program: it gets an instance as plain JSON, and its plan leaves as plain JSON.

Started by mapgap.execution.program as a script in an interpreter that has imported nothing of mapgap, in a folder that
holds ``program.py`` and ``instance.json``. Standard library only. Nothing that is said here is believed.
"""

import importlib.util
import json
import os
import sys
from typing import Any


def answer() -> dict[str, Any]:
    """The last message of the run: the plan that ``solve(instance)`` of the program returns, or why there is none."""
    try:
        spec = importlib.util.spec_from_file_location("program", "program.py")
        assert spec is not None
        assert spec.loader is not None
        program = importlib.util.module_from_spec(spec)
        sys.modules["program"] = program
        spec.loader.exec_module(program)
        with open("instance.json", encoding="utf-8") as stream:
            instance = json.load(stream)
        plan = json.loads(json.dumps(program.solve(instance), allow_nan=False))
    except BaseException as error:  # SystemExit too
        return {"error": f"{type(error).__name__}: {error}"[:2000]}
    if not isinstance(plan, dict):
        return {"error": f"expected solve() to return a plan as a dict, found {type(plan).__name__}"}
    told: dict[str, Any] = {"bound": None, "claimed": None, "enumerated": False, "reason": "", "notes": {}}
    return {"wall_s": 0.0, "result": {"status": "FEASIBLE", "stop": "done", "plan": plan, **told}}


def main(descriptor: int) -> None:
    with os.fdopen(descriptor, "wb", buffering=0) as channel:
        channel.write(b'{"event": "start"}\n')
        data = memoryview(json.dumps({"event": "end", **answer()}).encode("utf-8", "replace") + b"\n")
        while data:
            data = data[channel.write(data) or 0 :]
    sys.stdout.flush()
    os._exit(0)  # no waiting for threads of the program


if __name__ == "__main__":
    main(int(sys.argv[1]))
