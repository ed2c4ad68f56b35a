"""The programs of the how-to pages do what the pages say."""

import re
import signal
import socket
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.pages import LONG, run, running, wait_for
from tests.runtime.support import ROOT, group_name


def programs(page: str, folder: Path, group: str = "") -> None:
    """Write the programs of a page to a folder, each with its name, for a group of its own."""
    text = (ROOT / "docs" / page).read_text()
    found = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", text, re.DOTALL)
    assert found
    for name, program in found:
        own = re.sub(r'(join\(\s*)"\w+"', rf'\1"{group}"', program)
        (folder / name).write_text(own)


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def test_the_stores_stay_alike(tmp_path: Path) -> None:
    programs("how-to/replicated-store.md", tmp_path, group_name())
    store = [sys.executable, "store.py"]
    with running([*store, "ann"], tmp_path) as ann:
        wait_for(ann, "ann has {}")
        say(ann, "colour=blue")
        wait_for(ann, "ann set colour to blue", "it was None")
        with running([*store, "bob"], tmp_path) as bob:
            wait_for(bob, "bob has {'colour': 'blue'}")
            say(bob, "colour=red")
            wait_for(bob, "bob set colour to red", "it was blue")
            wait_for(ann, "bob set colour to red")
            bob.kill()
            say(ann, "colour=green")
            wait_for(ann, "ann set colour to green", "it was red")
        say(ann, "")
        assert ann.wait(LONG) == 0


def test_ctrl_c_ends_a_store_that_waits_for_a_line(tmp_path: Path) -> None:
    programs("how-to/replicated-store.md", tmp_path, group_name())
    with running([sys.executable, "store.py", "ann"], tmp_path) as ann:
        wait_for(ann, "ann has {}")
        ann.send_signal(signal.SIGINT)
        assert ann.wait(LONG) != 0


def test_all_readers_get_the_market_data(tmp_path: Path) -> None:
    programs("how-to/market-data.md", tmp_path, group_name())
    reader = [sys.executable, "reader.py"]
    with running([*reader, "ann"], tmp_path) as ann, running([*reader, "bob"], tmp_path) as bob:
        for name, process in (("ann", ann), ("bob", bob)):
            wait_for(process, f"{name} is ready")
        run([sys.executable, "publisher.py", "5000"], tmp_path)
        for name, process in (("ann", ann), ("bob", bob)):
            wait_for(process, f"{name} read 5000 ticks, the last of ACME at 49.99")


def test_the_tests_of_an_application_pass(tmp_path: Path) -> None:
    programs("how-to/test-your-application.md", tmp_path)
    printed = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."], tmp_path)
    assert "6 passed" in printed


@pytest.mark.parametrize("program", ["stop.py", "stop_async.py"])
def test_a_program_leaves_in_order_at_sigterm(program: str, tmp_path: Path) -> None:
    programs("how-to/deploy.md", tmp_path, group_name())
    with running([sys.executable, program], tmp_path) as process:
        wait_for(process, "ready")
        process.terminate()
        wait_for(process, "left in order")
        assert process.wait(LONG) == 0


def test_a_new_protocol_runs_in_the_simulator_and_in_a_group(tmp_path: Path) -> None:
    page = ROOT / "docs" / "write-a-protocol.md"
    programs(page.name, tmp_path, group_name())
    printed = run([sys.executable, "try_word.py"], tmp_path)
    assert f"```\n$ python try_word.py\n{printed}```" in page.read_text()
    checked = run([sys.executable, "-m", "mypy", "--strict", "word.py", "try_word.py"], tmp_path)
    assert checked.startswith("Success")


@pytest.mark.spark
def test_the_job_writes_averages(tmp_path: Path) -> None:
    from ringcast import Address
    from ringcast.journal import JournalWriter

    group = group_name()
    programs("how-to/spark-job.md", tmp_path, group)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = (tmp_path / "service.py").read_text()
    here = service.replace('port=7800, bind="10.0.0.1"', f"port={port}")
    assert here != service
    (tmp_path / "service.py").write_text(here)
    ticks = [b'{"symbol": "ACME", "price": %d}' % price for price in (1, 2, 6)]
    with JournalWriter(tmp_path / "journal", "prices", Address(1)) as journal:
        journal.append(1, Address(2), Address(2), 1, ticks, sent_at=1, delivered_at=2)
    page = (ROOT / "docs" / "how-to" / "spark-job.md").read_text()
    (back,) = re.findall(r"```python\n(\(averages\..*?)```", page, re.DOTALL)
    back = back.replace('"results"', f'"{group}"').replace("10.0.0.1:7800", f"127.0.0.1:{port}")
    with (tmp_path / "job.py").open("a") as job:
        job.write(back)
    with running([sys.executable, "service.py"], tmp_path) as process:
        printed = run([sys.executable, "job.py", "journal", "results"], tmp_path)
        wait_for(process, '{"symbol":"ACME","price":3.0,"ticks":3}')
    assert re.search(r"\|\s*ACME\|\s*3\.0\|\s*3\|", printed), printed


@pytest.mark.spark
def test_the_recipes_read_payloads_and_keep_what_cannot_be_read(tmp_path: Path) -> None:
    import fastavro
    from google.protobuf.struct_pb2 import Struct

    from ringcast import Address
    from ringcast.journal import JournalWriter

    text = (ROOT / "docs" / "how-to" / "recipes.md").read_text()
    blocks = re.findall(r"```python\n# recipes\.py\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 7
    program = "\n".join(blocks)
    assert "100_000" in program
    (tmp_path / "recipes.py").write_text(program.replace("100_000", "4"))
    tick = Struct()
    tick["symbol"] = "ACME"
    avro = BytesIO()
    fields = [{"name": "symbol", "type": "string"}, {"name": "price", "type": "double"}]
    schema: Any = {"type": "record", "name": "Tick", "fields": fields}
    fastavro.schemaless_writer(avro, schema, {"symbol": "ACME", "price": 5.0})
    payloads = [
        b'{"symbol": "ACME", "price": 2}',
        b'{"symbol": "ACME", "price": 6}',
        b'{"symbol": "ACME"}',
        tick.SerializeToString(),
        b"\xf5row" + bytes(40),
        avro.getvalue(),
        b'{"symbol": "ACME", "price": 7}',
    ]
    with JournalWriter(tmp_path / "journal", "prices", Address(1)) as journal:
        journal.append(1, Address(2), Address(2), 1, payloads, sent_at=1, delivered_at=2)
    printed = run([sys.executable, "recipes.py", "journal", "results"], tmp_path)
    assert "3 ticks, 4 dead letters" in printed, printed
    assert "1 messages by protobuf" in printed
    assert "1 messages by Avro" in printed
    assert "6 messages of members, 7 in all" in printed
    assert "Delta: [{'symbol': 'ACME', 'price': 7.0, 'seqno': 7}]" in printed
    assert list((tmp_path / "results" / "last").glob("*.parquet"))


def test_the_service_shares_its_settings(tmp_path: Path) -> None:
    programs("how-to/fastapi.md", tmp_path, group_name())
    script = (
        "from fastapi.testclient import TestClient\n"
        "import service\n"
        "with TestClient(service.app) as client:\n"
        "    assert client.put('/settings/a', params={'value': 'b'}).json() == {'sent': 'a'}\n"
        "    while client.get('/settings').json() != {'a': 'b'}: pass\n"
        "    assert client.get('/ready').json()['members'] == 1\n"
    )
    run([sys.executable, "-c", script], tmp_path)
