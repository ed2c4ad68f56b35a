"""`ringcast bench`: throughput, latency and cost beside bare sockets and other systems."""

from __future__ import annotations

import json
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.numbers import number
from ringcast.cli.progress import Ticker
from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from ringcast.bench.namespace import Namespace as Network
    from ringcast.bench.scenarios import Scenario


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast bench`."""
    parser.epilog = "Without WHAT, all scenarios of the network are run, which takes many minutes."
    parser.add_argument("--only", metavar="NAME,…", help="these scenarios; --list names them")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    _add_common(parser, repeats=3, quick=False, json=False)
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    form = what.add_parser("form", help="the time until members are in one view")
    form.add_argument("--members", default="2,10,50", help="how many (%(default)s)")
    _add_common(form)
    trace = what.add_parser("trace", help="what a member's trace costs it")
    _add_common(trace)
    micro = what.add_parser("micro", help="window, codec, ladder and simulator by themselves")
    micro.add_argument("--baseline", metavar="FILE", help="earlier results to compare with")
    micro.add_argument("--save", metavar="FILE", help="keep the results here")
    micro.add_argument("--most", type=number, metavar="X", help="fail above X times the baseline")
    _add_common(micro)
    audit = what.add_parser("audit", help="CPU seconds of an audit by Spark, and by DuckDB")
    audit.add_argument("--rows", type=int, default=20_000_000, help="delivery rows (%(default)s)")
    audit.add_argument("--run", type=int, default=1, help="messages in a row (%(default)s)")
    audit.add_argument("--times", type=int, default=2, help="the best of these (%(default)s)")
    _add_common(audit)
    sim = what.add_parser(
        "sim", help="messages that the simulator delivers in a second of real time"
    )
    sim.add_argument("--members", type=int, default=4, help="how many members (%(default)s)")
    sim.add_argument("--size", type=int, default=100, help="bytes of a message (%(default)s)")
    sim.add_argument("--messages", type=int, default=200_000, help="in total (%(default)s)")
    _add_common(sim)


def run(arguments: Namespace) -> int:
    """Measure and print."""
    return RUNS[arguments.what](arguments)


# The network -------------------------------------------------------------------------------------


def run_network(arguments: Namespace) -> int:
    """The scenarios with real processes."""
    from ringcast.bench.scenarios import SCENARIOS

    chosen = _choose(SCENARIOS, arguments.only)
    if not arguments.list:
        return _run_scenarios(arguments, chosen)
    if arguments.json:
        print(json.dumps({scenario.name: scenario.title for scenario in chosen}))
        return 0
    width = max(len(scenario.name) for scenario in chosen)
    for scenario in chosen:
        print(f"{scenario.name:<{width}}  {scenario.title}")
    return 0


def run_trace(arguments: Namespace) -> int:
    """The same with and without a trace."""
    from ringcast.bench.scenarios import TRACE

    return _run_scenarios(arguments, [TRACE])


def run_form(arguments: Namespace) -> int:
    """The time until members are in one view."""
    from ringcast.bench.form import form
    from ringcast.bench.namespace import Namespace as Network

    sizes = _numbers("--members", arguments.members)
    with Network() as network:
        _explain(network)
        formed = []
        for group in form(sizes, network):
            formed.append(group)
            if not arguments.json:
                mark = ", disturbed by other load" if group.is_disturbed else ""
                print(f"{group.members:>4} members: {group.seconds:.2f} s{mark}", flush=True)
    if arguments.json:
        print(json.dumps({"formed": [vars(group) for group in formed]}))
    return 0


def _run_scenarios(arguments: Namespace, chosen: Sequence[Scenario]) -> int:
    from ringcast.bench.machine import about, about_text
    from ringcast.bench.namespace import Namespace as Network
    from ringcast.bench.run import run_scenario
    from ringcast.bench.table import data_of, goals_text, text_of

    if arguments.repeats < 1:
        raise ConfigError(f"--repeats is {arguments.repeats}: give at least 1")
    repeats, quick = arguments.repeats, arguments.quick
    ticker, outcomes = Ticker(), []
    if not arguments.json:
        print(about_text() + "\n")
    with Network() as network:
        _explain(network)
        for scenario in chosen:
            outcome = run_scenario(scenario, network, repeats=repeats, quick=quick, say=ticker.say)
            ticker.close()
            outcomes.append(outcome)
            if not arguments.json:
                print(text_of(outcome) + "\n", flush=True)
        own = bool(network.enter)
    if arguments.json:
        scenarios = {outcome.scenario.name: data_of(outcome) for outcome in outcomes}
        print(
            json.dumps(
                {"machine": about(), "namespace": own, "quick": quick, "scenarios": scenarios}
            )
        )
    else:
        print(goals_text(outcomes))
    return 1 if any(outcome.has_failed for outcome in outcomes) else 0


def _explain(network: Network) -> None:
    if network.missing:
        print(
            f"no network namespace can be made ({network.missing}):"
            " the machine's own loopback interface is used",
            file=sys.stderr,
        )


def _choose(scenarios: Sequence[Scenario], names: str | None) -> Sequence[Scenario]:
    """The scenarios of these names. Raises ConfigError for a name that is none."""
    if names is None:
        return scenarios
    by_name = {scenario.name: scenario for scenario in scenarios}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in by_name]
    if unknown or not wanted:
        raise ConfigError(f"there is no scenario '{', '.join(unknown)}': see ringcast bench --list")
    return [by_name[name] for name in wanted]


# Everything else ---------------------------------------------------------------------------------


def run_micro(arguments: Namespace) -> int:
    """Window, codec, ladder and simulator."""
    from ringcast.bench.micro.report import Results, ratios, run_all, table

    baseline = Results.load(arguments.baseline) if arguments.baseline else None
    ticker = Ticker()
    results = run_all(arguments.quick, ticker.say)
    ticker.close()
    compared = {} if baseline is None else ratios(results, baseline)
    if arguments.save:
        Path(arguments.save).write_text(results.to_json() + "\n")
    if arguments.json:
        print(json.dumps(vars(results) | {"ratios": compared}))
    else:
        print(table(results, compared))
    most = arguments.most
    return 1 if most is not None and any(ratio > most for ratio in compared.values()) else 0


def run_audit(arguments: Namespace) -> int:
    """Spark and DuckDB over the same trace."""
    from ringcast.bench.audit import audit_cost

    ticker = Ticker()
    cost = audit_cost(arguments.rows, arguments.run, arguments.times, ticker.say)
    ticker.close()
    print(json.dumps(cost.to_data()) if arguments.json else cost.to_text())
    return 0


def run_sim(arguments: Namespace) -> int:
    """The speed of the simulator."""
    from ringcast import presets
    from ringcast.sim.speed import Speed, measure

    def speed_of(batch: int, messages: int) -> Speed:
        size, members = arguments.size, arguments.members
        return measure(presets.lan(), batch=batch, messages=messages, members=members, size=size)

    speeds = [speed_of(64, arguments.messages), speed_of(1, arguments.messages // 10)]
    if arguments.json:
        print(json.dumps([vars(speed) | {"per_second": speed.per_second} for speed in speeds]))
        return 0
    print(
        f"The simulator, {arguments.members} members, messages of {arguments.size} bytes, no loss:"
    )
    for speed in speeds:
        print(
            f"  in runs of {speed.batch:>2}: {speed.per_second:>12,.0f} messages delivered a second"
        )
    return 0


RUNS: dict[str | None, Callable[[Namespace], int]] = {
    None: run_network,
    "form": run_form,
    "trace": run_trace,
    "micro": run_micro,
    "audit": run_audit,
    "sim": run_sim,
}
"""What is measured, by its name."""


def _add_common(parser: ArgumentParser, **defaults: object) -> None:
    """Arguments that may stand before WHAT and behind it; only the first have a default."""
    parser.add_argument(
        "--repeats",
        type=int,
        metavar="N",
        default=defaults.get("repeats", SUPPRESS),
        help="runs of each row, of which the median counts (3)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        default=defaults.get("quick", SUPPRESS),
        help="few messages: shows that all works, not how fast",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        default=defaults.get("json", SUPPRESS),
        help="print one JSON object and nothing else",
    )


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ConfigError(f"{option} is '{text}': give numbers, as in 2,10,50")
    return numbers
