"""`ringcast completion`: scripts that shells accept, with every command and option."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ringcast.cli.completion import SHELLS, bash, fish, words
from ringcast.cli.main import COMMANDS, main


def test_every_command_and_its_options_are_in_the_scripts() -> None:
    assert "--seeds" in {option for option, _ in words("node").options}
    for script in (bash(), fish()):
        for name in COMMANDS:
            assert name in script
            for option, _ in words(name).options:
                assert option in script or f"-l {option[2:]} " in script


def test_subcommands_and_values_are_words_as_well() -> None:
    assert {"net", "form"} <= set(words("bench").first)
    assert {"lan", "NakAck4"} <= set(words("explain").first)
    node = words("node").values
    assert "auto" in node["--when-alone"]
    assert "loopback" in node["--preset"]
    assert "SlowMembers" in node["--with"]


def test_bash_completes_commands_and_options() -> None:
    ask = (
        '\nCOMP_WORDS=(ringcast no); COMP_CWORD=1; _ringcast; echo "${COMPREPLY[@]}"'
        '\nCOMP_WORDS=(ringcast node --see); COMP_CWORD=2; _ringcast; echo "${COMPREPLY[@]}"'
        '\nCOMP_WORDS=(ringcast sim --preset l); COMP_CWORD=3; _ringcast; echo "${COMPREPLY[@]}"'
        '\nCOMP_WORDS=(ringcast completion z); COMP_CWORD=2; _ringcast; echo "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["bash", "-c", bash() + ask], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.splitlines() == ["node", "--seeds", "lan loopback", "zsh"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "ringcast" in capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid_in_its_shell(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (program := shutil.which(shell)) is None:
        pytest.skip(f"needs {shell}")
    script = tmp_path / "completion"
    assert main(["completion", shell]) == 0
    script.write_text(capsys.readouterr().out)
    done = subprocess.run([program, "-n", str(script)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
