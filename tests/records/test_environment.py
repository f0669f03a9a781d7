"""Where a run came from: the revision of the code."""

import subprocess

from mapgap.records import environment


def test_revision_is_dirty_by_code_and_not_by_reports(tmp_path):
    def git(*words):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=n", "-c", "user.email=e", *words], check=True)

    def now():
        return environment.revision.__wrapped__(tmp_path)

    assert now() is None  # no checkout
    git("init", "-q")
    (tmp_path / "reports").mkdir()
    for name in ("code.py", "reports/runs.jsonl"):
        (tmp_path / name).write_text("as committed")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    clean = now()
    assert len(clean) == 12
    (tmp_path / "reports" / "runs.jsonl").write_text("one run more")
    (tmp_path / "new.txt").write_text("not followed")
    assert now() == clean
    (tmp_path / "code.py").write_text("changed")
    assert now() == f"{clean}-dirty"
