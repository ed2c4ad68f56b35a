"""Each block of Python in the docs is run: here, or by another test that is named here.

A block of an asynchronous page becomes the body of a function. What it leaves open (a loop without
an end, a name of the page's reader) is put in by `changes`; `before` and `after` stand around it.
"""

import re
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runtime.pages import run
from tests.runtime.support import ROOT, group_name

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)

IMPORTS = """
import asyncio, inspect, json, logging, os, sys
import ringcast
from ringcast import presets, sync
from ringcast.sim import World

async def serve(group):
    async for _ in group:
        pass
"""


@dataclass(frozen=True, kw_only=True)
class Snippet:
    """How one block is run."""

    page: str
    index: int
    before: str = ""
    after: str = ""
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.page}-{self.index}"


SIGNATURE = """
def check(group, spec, **named):
    known = inspect.signature(ringcast.join).parameters
    assert {n: p.default for n, p in known.items() if n in named} == named
    assert list(known) == ["group", "spec", *named]
group = "prices"
"""
ALONE = 'group = await ringcast.join("GROUP").__aenter__()\n'
PROVIDER = """
first = await ringcast.join("GROUP", on_state_request=lambda: b"model").__aenter__()
serving = asyncio.create_task(serve(first))
group = await ringcast.join("GROUP", state=True).__aenter__()
"""
FIRST = """
from ringcast import presets
first = sync.join("GROUP", presets.tcp(when_alone="create"))
"""

ROWS = """
    from uuid import uuid4
    from ringcast.job_rows import Stamp
    first.send_many(Stamp(uuid4(), 1, 0).messages([b"a"]))
"""

SNIPPETS = (
    Snippet(
        page="api",
        index=0,
        before=FIRST.replace("GROUP", "GROUP-tcp"),
        changes=(
            ("        ...", "        break"),
            ('sync.join("GROUP"', 'sync.join("GROUP-tcp"'),
            ('"127.0.0.1:7800"', "first.endpoint"),
        ),
    ),
    Snippet(
        page="api",
        index=1,
        before=SIGNATURE,
        changes=(("ringcast.join(", "check("), ("*, ", "")),
    ),
    Snippet(
        page="api", index=2, changes=(("[…]", '["10.0.0.1:7800"]'), ('dns="…"', 'dns="name:7800"'))
    ),
    Snippet(page="api", index=3, before=ALONE + "rows = [b'a', b'b']\n"),
    Snippet(
        page="api",
        index=4,
        changes=(
            ("    async for", "    await group.send(b'{\"a\": 1}')\n    async for"),
            ("(message.payload))\n", "(message.payload))\n        break\n"),
        ),
        after='assert prices == {"a": 1}',
    ),
    Snippet(page="api", index=5, before=PROVIDER, after='assert open(path).read() == "model"'),
    Snippet(
        page="api",
        index=6,
        changes=(
            (
                'async with ringcast.join("GROUP", on_call=answer) as group:\n    ...',
                'group = await ringcast.join("GROUP", on_call=answer).__aenter__()\n'
                "serving = asyncio.create_task(serve(group))",
            ),
        ),
        after='assert list(replies.answers.values()) == [b"42"]',
    ),
    Snippet(
        page="audit",
        index=2,
        before="""
member = sender = by = number = first = sent_at = at = 1
members, names, payloads, count, nbytes = (1,), ("ann",), [b"a", b"b"], 2, 2
""",
        after="from pathlib import Path\nfrom ringcast.trace.check import check\n"
        "from ringcast.trace.table import read_rows\n"
        'rows = read_rows(Path("trace"))\n'
        "assert len(rows) == 4 and check(rows) == []",
    ),
    Snippet(page="demo", index=0),
    Snippet(page="how-to/tune", index=0, after='assert spec["NakAck4"].capacity == 10_000'),
    Snippet(
        page="journal",
        index=0,
        before=ALONE
        + """
await group.send_many([b"a", b"b"])
batch, view = await anext(group.batches()), group.view
now_us = batch.sent_at
skipped = ringcast.Skipped(batch.sender, batch.last + 1, batch.last + 2, "")
""",
        after="from ringcast.journal import Journal\n"
        'assert [b.num_rows for b in Journal("journal/").read()] == [2]',
    ),
    Snippet(
        page="journal",
        index=2,
        before="from ringcast import Address\nfrom ringcast.journal import JournalWriter\n"
        'JournalWriter("journal/", "prices", Address(1)).close()',
    ),
    Snippet(
        page="large-messages",
        index=0,
        before=ALONE + "await group.send(b'x')\n",
        changes=(("            ...", "            break"),),
    ),
    Snippet(page="networks", index=0),
    Snippet(page="operations", index=0),
    Snippet(page="operations", index=1),
    Snippet(page="operations", index=2, changes=(("9187", "0"),)),
    Snippet(
        page="ringbuffer",
        index=0,
        after='on_datagram(1, b"a"); on_datagram(3, b"c")\nassert deliver() == [b"a"]',
    ),
    Snippet(
        page="security",
        index=0,
        before="from ringcast.cli.main import main as command\n"
        'assert command(["keygen", "group.key"]) == 0\n',
    ),
    Snippet(page="simulator", index=0),
    Snippet(page="extend", index=0),
    Snippet(page="extend", index=1),
    Snippet(page="extend", index=2),
    Snippet(page="extend", index=3),
    Snippet(
        page="sink",
        index=1,
        before=FIRST,
        changes=(
            ('"127.0.0.1:7800"', "first.endpoint"),
            ("    async for", ROWS + "    async for"),
            ("# its place", "\n        break"),
        ),
        after='assert row.value == b"a"',
    ),
    Snippet(page="compression", index=0, after="assert plain >= 3 * packed"),
    Snippet(page="total-order", index=0, changes=(("presets.lan()", "presets.loopback()"),)),
)

ELSEWHERE = {
    "README": "tests/runtime/test_readme.py::test_the_other_examples_of_the_readme_run",
    "index": "tests/runtime/test_readme.py::test_the_first_example_prints_what_the_page_shows",
    "tutorial": "tests/runtime/test_tutorial.py::test_the_journal_holds_what_was_sent",
    "idempotent-requests": "tests/runtime/test_readme.py::"
    "test_the_page_on_idempotent_requests_adds_once",
    "how-to/deploy": "tests/runtime/test_how_to.py::test_a_program_leaves_in_order_at_sigterm",
    "how-to/fastapi": "tests/runtime/test_how_to.py::test_the_service_shares_its_settings",
    "how-to/market-data": "tests/runtime/test_how_to.py::test_all_readers_get_the_market_data",
    "how-to/replicated-store": "tests/runtime/test_how_to.py::test_the_stores_stay_alike",
    "how-to/recipes": "tests/runtime/test_how_to.py::"
    "test_the_recipes_read_payloads_and_keep_what_cannot_be_read",
    "how-to/spark-job": "tests/runtime/test_how_to.py::test_the_job_writes_averages",
    "how-to/test-your-application": "tests/runtime/test_how_to.py::"
    "test_the_tests_of_an_application_pass",
    "write-a-protocol": "tests/runtime/test_how_to.py::"
    "test_a_new_protocol_runs_in_the_simulator_and_in_a_group",
}
"""Pages whose blocks a test runs that is made for them."""

SPARK = (
    Snippet(
        page="audit",
        index=0,
        before='assert command("sim --members 3 --messages 60 --trace trace".split()) == 0',
        after='assert report.verdict == "clean" and os.path.exists("report.html")',
    ),
    Snippet(page="audit", index=1, after="stop_after_rows(spark)"),
    Snippet(
        page="journal",
        index=3,
        before="""
with JournalWriter("journal", "prices", Address(1)) as journal:
    journal.append(1, Address(2), Address(2), 1, [b"a", b"b"], sent_at=1, delivered_at=2)
""",
        changes=(('load("journal/")\n(', 'load("journal/").show()\n('),),
        after="finish(spark)\nassert spark.read.parquet('table/').count() == 2",
    ),
    Snippet(
        page="journal",
        index=4,
        before="rows = spark.read.format('ringcast').load('journal/')",
        changes=(
            (".count()\n", ".count().show()\n"),
            ('alias("lives"))', 'alias("lives")).show()'),
        ),
    ),
    Snippet(
        page="journal",
        index=1,
        before="""
store = f"file://{os.getcwd()}/store"
assert command(["upload", "journal", store]) == 0
to_store = spark.readStream.format("ringcast").load(store).writeStream.format("parquet")
query = to_store.option("checkpointLocation", "check2/").start("table2/")
query.processAllAvailable()
""",
        changes=(
            ('"s3://bucket/prices?region=eu-central-1")     # or', "store).show()     # or"),
            ('"s3://bucket/prices?region=eu-central-1")', "store)"),
        ),
        after="query.stop()\nassert spark.read.parquet('table2/').count() == 2",
    ),
    Snippet(
        page="sink",
        index=0,
        before="""
scores = spark.createDataFrame([("ann",)], "name string")
scores.write.json("scores/")
stream = spark.readStream.schema("name string").json("scores/")
first = sync.join("GROUP", presets.tcp(when_alone="create"))
got = []
reader = threading.Thread(target=lambda: got.extend(sync.rows(first)), daemon=True)
reader.start()
""",
        changes=(
            ('"127.0.0.1:7800"', "first.endpoint"),
            ('"models"', '"GROUP"'),
            ("(scores.", "(stream."),
            ('"check/"', '"check3/"'),
        ),
        after="""
finish(spark)
first.leave()
reader.join(60)
assert [row.value for row in got] == [b'{"name":"ann"}'] * 2, got
""",
    ),
    Snippet(
        page="sweep",
        index=0,
        before="""
with open("grid.toml", "w") as file:
    file.write("members = 3\\nmessages = 30\\nseeds = 1\\n")
""",
        changes=(
            ('"grid.toml")           ', '"grid.toml").show()           '),
            ('"seeds": 20', '"seeds": 1, "messages": 30'),
            ("[16, 64]}})", "[16, 64]}}).show()"),
        ),
        after="assert not sweep.wrong",
    ),
)
"""Blocks that need Spark: they are run in this order, by one program."""

SPARK_IMPORTS = """
import os, sys, threading
from pyspark.sql import functions as F
from ringcast import Address, presets, sync
from ringcast.cli.main import main as command
from ringcast.journal import JournalWriter

def finish(spark):
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()

def stop_after_rows(spark):
    for query in spark.streams.active:  # Timers of an audit always have a further batch due.
        while not any(progress["numInputRows"] for progress in query.recentProgress):
            query.awaitTermination(1)
        query.stop()
"""


def blocks(page: str) -> list[str]:
    """The blocks of Python in a page."""
    path = ROOT / "README.md" if page == "README" else ROOT / "docs" / f"{page}.md"
    return [block for language, block in BLOCK.findall(path.read_text()) if language == "python"]


def pages() -> list[str]:
    """The pages written by hand, from docs/, without their endings."""
    found = [
        path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")
    ]
    names = [path.as_posix() for path in found]
    return ["README", *sorted(name for name in names if not name.startswith("reference/"))]


def test_each_block_is_run() -> None:
    shown = {
        (page, n) for page in pages() if page not in ELSEWHERE for n in range(len(blocks(page)))
    }
    known = Counter((s.page, s.index) for s in (*SNIPPETS, *SPARK))
    assert set(known) == shown
    assert max(known.values()) == 1


@pytest.mark.parametrize("page", ELSEWHERE)
def test_the_tests_of_other_blocks_exist(page: str) -> None:
    path, _, name = ELSEWHERE[page].partition("::")
    assert f"def {name}(" in (ROOT / path).read_text()
    assert blocks(page)


def changed(snippet: Snippet) -> str:
    """A block as it is run, with what stands around it."""
    text = blocks(snippet.page)[snippet.index]
    text = re.sub(r'(join\(\s*)"\w+"', r'\1"GROUP"', text)
    for old, new in snippet.changes:
        assert old in text, f"{snippet.name} has no {old!r} any more"
        text = text.replace(old, new)
    return "\n".join((snippet.before, text, snippet.after))


def program(snippet: Snippet, group: str) -> str:
    """The program that runs a block: its body in a function that may await."""
    body = changed(snippet)
    made = f"{IMPORTS}\nasync def main():\n{textwrap.indent(body, '    ')}\n\nasyncio.run(main())\n"
    return f"{made}sys.stdout.flush(); os._exit(0)\n".replace("GROUP", group)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.name)
def test_a_block_runs(snippet: Snippet, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(program(snippet, group_name()))
    run([sys.executable, "program.py"], tmp_path)


@pytest.mark.spark
def test_the_blocks_that_need_spark_run(tmp_path: Path) -> None:
    text = "\n".join([SPARK_IMPORTS, *map(changed, SPARK)]).replace("GROUP", group_name())
    (tmp_path / "program.py").write_text(f"{text}\nsys.stdout.flush(); os._exit(0)\n")
    run([sys.executable, "program.py"], tmp_path)
