"""`ringcast sim`: one simulated run."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ringcast import presets
from ringcast.cli.progress import Ticker
from ringcast.errors import ConfigError
from ringcast.sim.show import HIDDEN, Show
from ringcast.sim.trial import Fault, Outcome, Trial
from ringcast.sim.trial import run as run_trial
from ringcast.spec import StackSpec

ACTIONS = ("crash", "pause", "resume", "leave", "restart", "partition")


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast sim`."""
    parser.add_argument("--members", type=int, default=4, help="how many members (%(default)s)")
    parser.add_argument(
        "--messages",
        type=int,
        default=1000,
        help="how many messages in total, from all senders together (%(default)s)",
    )
    parser.add_argument("--size", type=int, default=100, help="bytes of a message (%(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="messages in a run (%(default)s)")
    parser.add_argument("--senders", type=int, help="how many of the members send (all)")
    parser.add_argument(
        "--duration",
        type=float,
        default=0.0,
        help="virtual seconds to spread the sending over; 0: as fast as the windows let it",
    )
    parser.add_argument("--seed", type=int, default=0, help="decides all chance (%(default)s)")
    parser.add_argument(
        "--preset", default="lan", help=", ".join(presets.PRESETS) + " (%(default)s)"
    )
    parser.add_argument(
        "--spec", metavar="FILE.toml", help="a stack of your own instead of a preset"
    )
    _add_network(parser)
    _add_faults(parser)
    output = parser.add_argument_group("output")
    output.add_argument("--show", action="store_true", help="print who sent what to whom")
    output.add_argument("--show-all", action="store_true", help="the same, with signs of life")
    output.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def _add_network(parser: ArgumentParser) -> None:
    network = parser.add_argument_group("the network, link by link")
    network.add_argument("--loss", type=float, default=0.0, help="chance that a datagram is lost")
    network.add_argument("--duplicate", type=float, default=0.0, help="… that it arrives twice")
    network.add_argument("--reorder", type=float, default=0.0, help="… that later ones overtake it")
    network.add_argument("--corrupt", type=float, default=0.0, help="… that it is damaged")
    network.add_argument(
        "--delay",
        type=_delay,
        default=(0.0001, 0.0005),
        metavar="LOW-HIGH",
        help="seconds that a datagram takes (0.0001-0.0005)",
    )
    network.add_argument(
        "--bandwidth", type=float, help="bytes per second of each sender (no limit)"
    )


def _add_faults(parser: ArgumentParser) -> None:
    faults = parser.add_argument_group(
        "faults, in seconds after the group has formed; members are m1, m2, …"
    )
    for action in ACTIONS:
        faults.add_argument(
            f"--{action}",
            action="append",
            default=[],
            metavar="NAME,…@TIME",
            help=f"{action} members; may be given several times",
        )
    faults.add_argument(
        "--heal", action="append", default=[], metavar="TIME", help="end partitions"
    )


def run(arguments: Namespace) -> int:
    """Run it; 0 when everything was delivered and every guarantee held."""
    trial = _trial(arguments)
    observer = None
    if arguments.show or arguments.show_all:
        write = _to_stderr if arguments.json else print
        observer = Show(write, () if arguments.show_all else HIDDEN)
    ticker = Ticker()
    outcome = run_trial(trial, observer, ticker.tick)
    ticker.close()
    if arguments.json:
        print(json.dumps(asdict(outcome) | {"complete": outcome.complete}, indent=2))
    else:
        _print(outcome)
    return 0 if outcome.complete else 1


def _trial(arguments: Namespace) -> Trial:
    return Trial(
        spec=_spec(arguments),
        faults=tuple(_faults(arguments)),
        **{
            name: getattr(arguments, name)
            for name in (
                *("seed", "members", "messages", "size", "batch", "senders", "duration"),
                *("loss", "delay", "duplicate", "reorder", "corrupt", "bandwidth"),
            )
        },
    )


def _spec(arguments: Namespace) -> StackSpec:
    if arguments.spec:
        return StackSpec.load(arguments.spec)
    if arguments.preset not in presets.PRESETS:
        raise ConfigError(
            f"there is no preset {arguments.preset}: there are {', '.join(presets.PRESETS)}"
        )
    return presets.PRESETS[arguments.preset]()


def _faults(arguments: Namespace) -> list[Fault]:
    found = [Fault(at=_time(time), action="heal") for time in arguments.heal]
    for action in ACTIONS:
        for text in getattr(arguments, action):
            names, at, time = text.partition("@")
            if not at:
                raise ConfigError(f"--{action} {text} has no time: write --{action} m1@0.5")
            found.append(Fault(at=_time(time), action=action, names=tuple(names.split(","))))
    return found


def _time(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{text} is no time: give seconds, say 0.5") from None


def _delay(text: str) -> tuple[float, float]:
    low, _, high = text.partition("-")
    return float(low), float(high or low)


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def _print(outcome: Outcome) -> None:
    rows = {
        "members": f"{len(outcome.members)} in {outcome.view}",
        "delivered": f"{outcome.delivered:,} of {outcome.expected:,}",
        "retransmitted": f"{outcome.retransmitted:,} messages",
        "control frames": f"{outcome.control_per_delivered:.4f} for each delivered message",
        "frames": ", ".join(f"{kind} {count:,}" for kind, count in outcome.frames.items()),
        "not arrived": ", ".join(f"{reason} {n:,}" for reason, n in outcome.lost.items())
        or "nothing",
        "windows": f"at most {outcome.window_bytes_max:,} bytes in one member",
        "time": f"{outcome.virtual_seconds:.3f} s virtual, {outcome.real_seconds:.2f} s real",
        "trace hash": outcome.trace_hash,
        "violations": "; ".join(outcome.violations) or "none",
    }
    if outcome.outstanding:
        rows["outstanding"] = "; ".join(outcome.outstanding[:10])
    for name, value in rows.items():
        print(f"{name + ':':<16}{value}")
