"""The files of examples/deploy: their commands exist, and their formats are right."""

import ast
import json
import re
import shlex
import shutil
import subprocess
from argparse import ArgumentParser, Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from ringcast.cli.main import COMMANDS

DEPLOY = Path(__file__).resolve().parents[2] / "examples" / "deploy"


def fields(**types: Any) -> dict[str, Any]:
    """A mapping that has these fields and no others."""
    return {"type": "object", "properties": types, "additionalProperties": False}


TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
DURATION = {"type": "string", "pattern": r"^(\d+(us|ms|s|m|h))+$"}
SERVICE = fields(
    image=TEXT,
    command={"anyOf": [TEXT, TEXTS]},
    healthcheck=fields(
        test={"anyOf": [TEXT, TEXTS]},
        interval=DURATION,
        timeout=DURATION,
        retries={"type": "integer"},
    ),
    deploy=fields(replicas={"type": "integer", "minimum": 0}),
    stop_signal={"type": "string", "pattern": "^SIG[A-Z]+$"},
    stop_grace_period=DURATION,
    restart={"enum": ["no", "always", "on-failure", "unless-stopped"]},
)
COMPOSE = {
    **fields(services={"type": "object", "additionalProperties": SERVICE}),
    "required": ["services"],
}
"""What the Compose Specification says of the fields that the example uses."""


def parsed(words: list[str]) -> Namespace:
    """The arguments of a command, read by its own parser; a wrong one ends the test."""
    program, command, *arguments = words
    assert program.rpartition("/")[2] == "ringcast"
    parser = ArgumentParser()
    import_module(COMMANDS[command][0]).add_arguments(parser)
    return parser.parse_args(arguments)


def test_the_unit_starts_a_member() -> None:
    [line] = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "ringcast.service").read_text(), re.M)
    assert parsed(shlex.split(line)).group == "prices"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "ringcast.service"
    text = (DEPLOY / "ringcast.service").read_text()
    unit.write_text(text.replace("/opt/prices/bin/ringcast", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert "ringcast.service" not in done.stderr


def test_the_containers_start_members() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    [line] = re.findall(r"exec (ringcast .*)$", text, re.M)
    assert parsed(shlex.split(line)).dns == "member"
    assert re.search(r"^  member:$", text, re.M), (
        "the name that is looked up is that of the service"
    )


def test_the_compose_file_is_what_the_specification_says() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    jsonschema.validate(compose, COMPOSE)
    assert list(compose["services"]) == ["member"]


@pytest.mark.parametrize(
    ("name", "value"), [("restrat", "always"), ("stop_grace_period", 20), ("restart", "sometimes")]
)
def test_a_misspelt_field_of_the_compose_file_is_found(name: str, value: object) -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    compose["services"]["member"][name] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(compose, COMPOSE)


def test_the_pods_start_members_and_are_asked_where_they_answer() -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    lists = [json.loads(found) for found in re.findall(r"(?:command|args): (\[.*\])$", text, re.M)]
    arguments = parsed([word for words in lists for word in words])
    assert arguments.dns == "prices:7800"
    assert "clusterIP: None" in text
    port = arguments.metrics if isinstance(arguments.metrics, str) else str(arguments.metrics)
    assert port.endswith("9187")
    assert text.count("9187") == 5, "one port for metrics, everywhere the same"


def manifests() -> list[dict[str, Any]]:
    """The resources for Kubernetes, by the order in which they stand there."""
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def test_the_manifests_are_what_kubernetes_takes() -> None:
    resources = manifests()
    assert {"Service", "Deployment"} == {resource["kind"] for resource in resources}
    for resource in resources:
        kubernetes_validate.validate(resource, kubernetes_validate.latest_version(), strict=True)


def test_a_misspelt_field_of_a_manifest_is_found() -> None:
    for resource in manifests():
        resource["spec"]["replica"] = 3
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(
                resource, kubernetes_validate.latest_version(), strict=True
            )


def test_the_notebook_is_one_and_its_cells_are_python() -> None:
    notebook = json.loads((DEPLOY / "audit.ipynb").read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    for cell in notebook["cells"]:
        assert {"cell_type", "id", "metadata", "source"} <= set(cell)
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]))
            assert cell["outputs"] == []
