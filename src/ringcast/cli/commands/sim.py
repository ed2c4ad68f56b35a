"""`ringcast sim`: one simulated run."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from ringcast.cli.numbers import number, seconds, whole
from ringcast.cli.progress import ProgressTicker
from ringcast.cli.stack import add_spec_arguments, chosen_spec
from ringcast.sim.engine.network import MTU, parse_delay
from ringcast.sim.engine.observer import WorldListener
from ringcast.sim.text.show import HIDDEN, Show
from ringcast.sim.trial import ACTIONS, HEAL, Fault, Trial, TrialOutcome, parse_fault
from ringcast.sim.trial import run as run_trial

FAULTS = {
    "crash": "end members without a leave; may be given several times, like all of these",
    "pause": "let members stand still: they neither receive nor send, as a stopped process",
    "resume": "let paused members go on",
    "busy": "let the application of members take no messages: senders fill their windows and wait",
    "idle": "let busy applications take messages again",
    "leave": "let members leave in order",
    "restart": "let members that are gone join anew, with a new identity",
    "partition": "cut these members off from all others",
    HEAL: "end all partitions",
}
"""What each fault does."""

CHANCES = {
    "loss": "is lost",
    "duplicate": "arrives twice",
    "reorder": "is overtaken by later ones",
    "corrupt": "is damaged",
}
"""What may happen to a datagram."""


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast sim`."""
    parser.add_argument(
        "--members", type=whole, default=4, metavar="N", help="members (%(default)s)"
    )
    parser.add_argument(
        "--messages",
        type=whole,
        default=1000,
        metavar="N",
        help="messages of all senders together (%(default)s)",
    )
    parser.add_argument(
        "--size", type=whole, default=100, metavar="BYTES", help="bytes per message (%(default)s)"
    )
    parser.add_argument(
        "--batch", type=whole, default=64, metavar="N", help="messages per run (%(default)s)"
    )
    parser.add_argument("--senders", type=whole, metavar="N", help="members that send (all)")
    parser.add_argument(
        "--still",
        type=whole,
        default=0,
        metavar="N",
        help="members, the last ones, that receive no messages (%(default)s)",
    )
    parser.add_argument(
        "--duration",
        type=number,
        default=0.0,
        metavar="SECONDS",
        help="virtual seconds to spread the sending over (0: as fast as the windows allow)",
    )
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="of all random choices (%(default)s)"
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=Trial.timeout,
        metavar="SECONDS",
        help="virtual seconds after which the run is given up (%(default)g)",
    )
    add_spec_arguments(parser.add_argument_group("the stack"), "left out: lan")
    _add_network(parser)
    _add_faults(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--show", action="store_true", help="print each frame with its sender and receivers"
    )
    output.add_argument("--show-all", action="store_true", help="the same, with signs of life")
    output.add_argument(
        "--trace", metavar="DIR", help="write the members' traces, for `ringcast audit DIR`"
    )
    output.add_argument("--json", action="store_true", help="print one JSON object, nothing else")


def _add_network(parser: ArgumentParser) -> None:
    network = parser.add_argument_group("the network, link by link; a CHANCE is from 0 to 1")
    for name, what in CHANCES.items():
        network.add_argument(
            f"--{name}",
            type=number,
            default=0.0,
            metavar="CHANCE",
            help=f"chance that a datagram {what} (%(default)g)",
        )
    network.add_argument(
        "--delay",
        default="0.0001-0.0005",
        metavar="LOW-HIGH",
        help="seconds that a datagram takes, with jitter (%(default)s)",
    )
    network.add_argument(
        "--packet-loss",
        type=number,
        default=0.0,
        metavar="CHANCE",
        help="chance that a packet is lost; a datagram is lost with any of its packets"
        " (%(default)g)",
    )
    network.add_argument(
        "--mtu",
        type=whole,
        default=MTU,
        metavar="BYTES",
        help="bytes per packet, for --packet-loss (%(default)s)",
    )
    network.add_argument(
        "--bandwidth",
        type=number,
        metavar="BYTES",
        help="bytes per second of each sender's uplink (no limit); 200 Mbit/s are 25e6",
    )
    network.add_argument(
        "--downlink",
        type=number,
        metavar="BYTES",
        help="bytes per second of each receiver's downlink (no limit)",
    )
    network.add_argument(
        "--shared",
        type=number,
        metavar="BYTES",
        help="bytes per second of the link that all members share (no limit)",
    )
    network.add_argument(
        "--queue",
        type=whole,
        metavar="BYTES",
        help="bytes that wait before each of these; more are dropped (4 MiB)",
    )


def _add_faults(parser: ArgumentParser) -> None:
    faults = parser.add_argument_group(
        "faults, in seconds after the group has formed; members are m1, m2, …"
    )
    for action in ACTIONS:
        heals = action == HEAL
        faults.add_argument(
            f"--{action}",
            action="append",
            default=[],
            metavar="TIME" if heals else "NAME,…@TIME",
            help=FAULTS[action],
        )


def run(arguments: Namespace) -> int:
    """Run it; 0 when everything was delivered and every guarantee held."""
    trial = make_trial(arguments)
    observer, trace = _observer(arguments), None
    if arguments.trace:
        from ringcast.sim.trace import SimulatedTrace

        observer = trace = SimulatedTrace(arguments.trace, inner=observer)
    ticker = ProgressTicker()
    outcome = run_trial(trial, observer, ticker.tick)
    ticker.close()
    if trace is not None:
        trace.close(settled=not outcome.outstanding)
    if arguments.json:
        print(json.dumps(asdict(outcome) | {"complete": outcome.complete}, indent=2))
    else:
        _print(trial, outcome)
    return 0 if outcome.complete else 1


def _observer(arguments: Namespace) -> WorldListener | None:
    """Who prints what happens, if it is to be printed."""
    if not arguments.show and not arguments.show_all:
        return None
    write = _to_stderr if arguments.json else print
    return Show(write, () if arguments.show_all else HIDDEN)


def make_trial(arguments: Namespace) -> Trial:
    """The run that the arguments describe. Raises ConfigError."""
    return Trial(
        spec=chosen_spec(arguments, "lan"),
        faults=tuple(_faults(arguments)),
        delay=parse_delay(arguments.delay),
        **{
            name: getattr(arguments, name)
            for name in (
                *("seed", "members", "messages", "size", "batch", "senders", "still", "duration"),
                *("loss", "duplicate", "reorder", "corrupt", "bandwidth", "timeout"),
                *("packet_loss", "mtu", "downlink", "shared", "queue"),
            )
        },
    )


def _faults(arguments: Namespace) -> list[Fault]:
    texts = {action: getattr(arguments, action) for action in ACTIONS}
    return [parse_fault(action, text) for action in ACTIONS for text in texts[action]]


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def _print(trial: Trial, outcome: TrialOutcome) -> None:
    rows = {
        "members": f"{len(outcome.members)} in {outcome.view}",
        "delivered": f"{outcome.delivered:,} of {outcome.expected:,}",
        "latency": _latency(outcome),
        "throughput": f"{outcome.throughput or 0:,.0f} messages a virtual second",
        "retransmitted": f"{outcome.retransmitted:,} messages",
        "control frames": f"{outcome.control_per_delivered:.4f} for each delivered message",
        "frames": ", ".join(f"{kind} {count:,}" for kind, count in outcome.frames.items()),
        "not arrived": ", ".join(f"{reason} {n:,}" for reason, n in outcome.lost.items())
        or "nothing",
        "acks": f"{outcome.acks:,} for {trial.messages:,} messages to {trial.members - 1:,} others",
        "windows": f"at most {outcome.window_bytes_max:,} bytes in one member",
        "memory": f"a sender {outcome.sender_bytes_max:,} bytes at most (bound"
        f" {outcome.sender_bytes_bound:,}), a receiver {outcome.receiver_bytes_max:,} (bound"
        f" {outcome.receiver_bytes_bound:,})",
        "time": f"{outcome.virtual_seconds:.3f} s virtual, {outcome.real_seconds:.2f} s real",
        "trace hash": outcome.trace_hash,
        "violations": "; ".join(outcome.violations) or "none",
    }
    if outcome.lacking:
        lacking = (f"{name} lacks {count:,}" for name, count in outcome.lacking.items())
        rows["not delivered"] = ", ".join(lacking)
    if outcome.outpaced:
        outpaced = (f"{name} after {seconds:.3g} s" for name, seconds in outcome.outpaced.items())
        rows["left behind"] = ", ".join(outpaced)
    if outcome.reported:
        reported = (f"{name} for {count:,} messages" for name, count in outcome.reported.items())
        rows["reported"] = ", ".join(reported)
    if outcome.outstanding:
        rows["outstanding"] = "; ".join(outcome.outstanding[:10])
    else:
        rows["buffers"] = "empty at all senders"
    for name, value in rows.items():
        print(f"{name + ':':<16}{value}")


def _latency(outcome: TrialOutcome) -> str:
    given = {
        "median": outcome.latency_p50,
        "99 %": outcome.latency_p99,
        "longest": outcome.latency_max,
    }
    told = [f"{name} {value * 1_000:.3g} ms" for name, value in given.items() if value is not None]
    return ", ".join(told) or "nothing was delivered to others"
