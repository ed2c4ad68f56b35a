"""An example or two for each command: the end of its `--help`, and the reference page."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "node": (
        "ringcast node chat --name ann",
        "ringcast node chat --bind 10.0.0.1 --port 7800",
        "ringcast node chat --bind 10.0.0.2 --seeds 10.0.0.1:7800",
    ),
    "top": ("ringcast top chat", "ringcast top chat --count 1 --json"),
    "ui": ("ringcast ui chat",),
    "status": ("ringcast status chat --watch",),
    "stability": ("ringcast stability chat --preset stable",),
    "doctor": ("ringcast doctor --group chat --seeds 10.0.0.1:7800 --bind eth0",),
    "explain": ("ringcast explain lan", "ringcast explain NakAck4"),
    "keygen": ("ringcast keygen group.key",),
    "record": ("ringcast record chat --to journal --keep-seconds 86400",),
    "compact": ("ringcast compact journal",),
    "upload": ("ringcast upload journal s3://bucket/chat --follow",),
    "audit": ("ringcast audit trace --report report.html",),
    "sim": (
        "ringcast sim --members 8 --messages 5000 --loss 0.2 --seed 7",
        "ringcast sim --members 3 --messages 6 --batch 2 --loss 0.3 --show",
        "ringcast sim --members 5 --duration 20 --crash m1@2 --partition m2,m3@5 --heal 12",
    ),
    "swarm": ("ringcast swarm --seeds 1000", "ringcast swarm --first 4711 --seeds 1 --show"),
    "sweep": ("ringcast sweep grid.toml --out sweep",),
    "demo": ("ringcast demo --loss 0.1",),
    "soak": ("ringcast soak --minutes 2 --seed 5",),
    "bench": ("ringcast bench --only 1-3-1k --repeats 1", "ringcast bench form"),
    "completion": ("ringcast completion bash",),
}


def epilog(command: str) -> str:
    """The examples of a command, as the end of its help."""
    examples = EXAMPLES[command]
    title = "examples:" if len(examples) > 1 else "example:"
    return "\n".join((title, *(f"  {example}" for example in examples)))
