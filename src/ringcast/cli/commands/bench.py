"""`ringcast bench`: throughput, latency and cost beside bare sockets and other systems."""

from __future__ import annotations

import json
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ringcast.cli.numbers import number, whole
from ringcast.cli.progress import ProgressTicker
from ringcast.errors import ConfigError

if TYPE_CHECKING:
    from ringcast_bench.namespace import Namespace as Network
    from ringcast_bench.run import RunRow
    from ringcast_bench.scenarios import Scenario
    from ringcast_bench.views.changes import ChangeTimes


def add_arguments(parser: ArgumentParser) -> None:
    """The arguments of `ringcast bench`."""
    parser.description = (
        "Throughput and latency of real processes on this machine, beside bare sockets and other"
        "\nsystems that are installed. Without WHAT it runs all scenarios: that takes many minutes."
    )
    parser.add_argument("--only", metavar="NAME,…", help="these scenarios; --list names them")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    _add_common(parser, repeats=3, quick=False, json=False)
    what = parser.add_subparsers(dest="what", metavar="WHAT")
    net = what.add_parser("net", help="groups on a bridge: MTU 1,500, loss, narrow links")
    net.add_argument("--only", metavar="NAME,…", default=SUPPRESS, help="these scenarios")
    net.add_argument("--list", action="store_true", default=SUPPRESS, help="list them and stop")
    _add_common(net)
    _add_beside(what.add_parser("beside", help="the speed of this tree beside an earlier one"))
    form = what.add_parser("form", help="the time until members are in one view")
    form.add_argument(
        "--members", default="2,10,50", help='how many join at once (%(default)s; "" for none)'
    )
    form.add_argument(
        "--changes",
        default="5,20",
        metavar="N,…",
        help="sizes of changing groups (%(default)s)",
    )
    form.add_argument(
        "--only", metavar="NAME,…", default=SUPPRESS, help="these changes, as in kill,heal"
    )
    form.add_argument("--stacks", metavar="NAME,…", default="", help="with loopback, tcp or lan")
    _add_common(form)
    trace = what.add_parser("trace", help="what a member's trace costs it")
    _add_common(trace)
    micro = what.add_parser("micro", help="window, codec, ladder and simulator by themselves")
    micro.add_argument("--baseline", metavar="FILE", help="earlier results to compare with")
    micro.add_argument("--save", metavar="FILE", help="keep the results here")
    micro.add_argument("--most", type=number, metavar="X", help="fail above X times the baseline")
    _add_common(micro)
    _add_audit(what.add_parser("audit", help="CPU seconds of an audit by Spark, and by DuckDB"))
    journal = what.add_parser("journal", help="reading a journal by Spark, beside plain Parquet")
    journal.add_argument("--rows", type=int, default=4_000_000, help="messages (%(default)s)")
    journal.add_argument(
        "--recorders", type=int, default=1, choices=(1, 2), help="recorders (%(default)s)"
    )
    journal.add_argument("--times", type=int, default=2, help="the best of these (%(default)s)")
    _add_common(journal)
    sim = what.add_parser(
        "sim", help="messages that the simulator delivers per second of real time"
    )
    sim.add_argument("--members", type=whole, default=4, help="members (%(default)s)")
    sim.add_argument("--size", type=whole, default=100, help="bytes per message (%(default)s)")
    sim.add_argument(
        "--messages", type=whole, default=200_000, help="messages in total (%(default)s)"
    )
    sim.add_argument("--growth", action="store_true", help="control frames in larger groups too")
    _add_common(sim)
    sink = what.add_parser("sink", help="rows from many workers: a member each, or one gateway")
    sink.add_argument(
        "--spark", action="store_true", help="a DataFrame to two receivers, beside Parquet"
    )
    _add_common(sink)


def _add_audit(audit: ArgumentParser) -> None:
    audit.add_argument("--rows", type=whole, default=20_000_000, help="delivery rows (%(default)s)")
    audit.add_argument("--run", type=whole, default=1, help="messages per row (%(default)s)")
    audit.add_argument("--members", type=whole, default=5, help="members (%(default)s)")
    audit.add_argument("--files", type=whole, default=0, help="files (one per member)")
    audit.add_argument(
        "--shape",
        choices=("deliveries", "members", "files", "compacted", "all"),
        help="100 M deliveries; 1,000 members; 20,000 files; these compacted; or all in turn",
    )
    audit.add_argument(
        "--scale", type=number, default=1.0, metavar="X", help="a shape X times as large"
    )
    audit.add_argument("--times", type=whole, default=2, help="the best of these (%(default)s)")
    audit.add_argument(
        "--master", metavar="URL", help="a Spark cluster, spark://host:7077 (this machine)"
    )
    _add_common(audit)


def run(arguments: Namespace) -> int:
    """Measure and print. Raises ConfigError when the benchmarks are not installed."""
    if find_spec("ringcast_bench") is None:
        raise ConfigError(
            "the benchmarks are the package ringcast-bench, which is not installed here:"
            " run `make install`, or `pip install -e bench`, in a checkout of the source"
        )
    return RUNS[arguments.what](arguments)


# The network -------------------------------------------------------------------------------------


def run_network(arguments: Namespace) -> int:
    """The scenarios with real processes."""
    from ringcast_bench.scenarios import SCENARIOS

    chosen = _choose(SCENARIOS, arguments.only)
    return _list(arguments, chosen) if arguments.list else _run_scenarios(arguments, chosen)


def run_net(arguments: Namespace) -> int:
    """The scenarios on a bridge, each row with a network of its own."""
    from ringcast_bench.net.bridge import why_not
    from ringcast_bench.net.run import run_row
    from ringcast_bench.net.scenarios import SCENARIOS

    chosen = _choose(SCENARIOS, arguments.only)
    if arguments.list:
        return _list(arguments, chosen)
    missing = why_not()
    if missing:
        print(f"skipped: no network can be built here ({missing})", file=sys.stderr)
        if arguments.json:
            print(json.dumps({"skipped": missing}))
        return 0
    return _print_outcomes(arguments, chosen, run_row)


def _list(arguments: Namespace, chosen: Sequence[Scenario]) -> int:
    if arguments.json:
        print(json.dumps({scenario.name: scenario.title for scenario in chosen}))
        return 0
    width = max(len(scenario.name) for scenario in chosen)
    for scenario in chosen:
        print(f"{scenario.name:<{width}}  {scenario.title}")
    return 0


def run_beside(arguments: Namespace) -> int:
    """The same scenarios in this tree and in another one, by turns."""
    from ringcast_bench.beside.compare import STANDARD, compare, table
    from ringcast_bench.beside.trees import tree_of
    from ringcast_bench.machine import about_text
    from ringcast_bench.namespace import Namespace as Network
    from ringcast_bench.scenarios import SCENARIOS

    chosen = _choose(SCENARIOS, arguments.only or STANDARD)
    repeats, ticker = _repeats(arguments), ProgressTicker()
    with tree_of(arguments.tree) as tree, Network() as network:
        _explain(network)
        compared = list(
            compare(network, tree, chosen, repeats=repeats, quick=arguments.quick, say=ticker.say)
        )
    ticker.close()
    if arguments.json:
        print(json.dumps([{**vars(one), "speed": one.speed} for one in compared]))
    else:
        print(f"{about_text()}\n\n{table(compared, arguments.tree)}")
    least = 0.0 if arguments.least is None else arguments.least
    return 1 if any(one.is_below(least) for one in compared) else 0


def run_trace(arguments: Namespace) -> int:
    """The same with and without a trace."""
    from ringcast_bench.scenarios import TRACE

    return _run_scenarios(arguments, [TRACE])


def run_form(arguments: Namespace) -> int:
    """The time until members are in one view."""
    from ringcast_bench.namespace import Namespace as Network
    from ringcast_bench.views.changes import CHANGES, STACKS, changes
    from ringcast_bench.views.form import form

    sizes = _numbers("--members", arguments.members) if arguments.members else []
    changing = _numbers("--changes", arguments.changes) if arguments.changes else []
    kinds = _names("--only", arguments.only, CHANGES)
    stacks = _names("--stacks", arguments.stacks, STACKS)
    with Network() as network:
        _explain(network)
        formed = []
        for group in form(sizes, network):
            formed.append(group)
            if not arguments.json:
                mark = ", disturbed by other load" if group.is_disturbed else ""
                print(f"{group.members:>4} members: {group.seconds:.2f} s{mark}", flush=True)
        changed = _print_changes(
            changes(changing, network, arguments.repeats, kinds, stacks), is_json=arguments.json
        )
    if arguments.json:
        print(json.dumps({"formed": [vars(group) for group in formed], "changed": changed}))
    return 0


def _print_changes(changes: Iterable[ChangeTimes], *, is_json: bool) -> list[dict[str, object]]:
    """The times that changes of a group take, beside each other."""
    from ringcast_bench.views.changes import HEADING

    changed: list[dict[str, object]] = []
    for change in changes:
        if not is_json:
            print("" if changed else f"\n{HEADING}\n", end="")
            print(change.line(), flush=True)
        changed.append(vars(change))
    return changed


def _run_scenarios(arguments: Namespace, chosen: Sequence[Scenario]) -> int:
    from ringcast_bench.namespace import Namespace as Network
    from ringcast_bench.run import run_row

    with Network() as network:
        _explain(network)
        return _print_outcomes(
            arguments, chosen, partial(run_row, network), namespace=bool(network.enter)
        )


def _print_outcomes(
    arguments: Namespace, chosen: Sequence[Scenario], run: RunRow, **about_run: object
) -> int:
    from ringcast_bench.machine import about, about_text
    from ringcast_bench.run import run_scenario
    from ringcast_bench.table import data_of, goals_text, text_of

    repeats, quick = _repeats(arguments), arguments.quick
    ticker, outcomes = ProgressTicker(), []
    if not arguments.json:
        print(about_text() + "\n")
    for scenario in chosen:
        outcome = run_scenario(scenario, run, repeats=repeats, quick=quick, say=ticker.say)
        ticker.close()
        outcomes.append(outcome)
        if not arguments.json:
            print(text_of(outcome) + "\n", flush=True)
    if arguments.json:
        scenarios = {outcome.scenario.name: data_of(outcome) for outcome in outcomes}
        head = {"machine": about(), **about_run, "quick": quick}
        print(json.dumps(head | {"scenarios": scenarios}))
    else:
        print(goals_text(outcomes))
    return 1 if any(outcome.has_failed for outcome in outcomes) else 0


def _repeats(arguments: Namespace) -> int:
    """Raises ConfigError for a number that makes no sense."""
    repeats: int = arguments.repeats
    if repeats < 1:
        raise ConfigError(f"--repeats is {repeats}: give at least 1")
    return repeats


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
        raise ConfigError(f"there is no scenario '{', '.join(unknown)}': --list names them all")
    return [by_name[name] for name in wanted]


# Everything else ---------------------------------------------------------------------------------


def run_micro(arguments: Namespace) -> int:
    """Window, codec, ladder and simulator."""
    from ringcast_bench.micro.report import Results, ratios, run_all, table

    baseline = Results.load(arguments.baseline) if arguments.baseline else None
    ticker = ProgressTicker()
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
    from ringcast_bench.audit.cost import NEEDS, SHAPES, TraceShape, audit_cost

    shapes = [TraceShape(arguments.rows, arguments.run, arguments.members, arguments.files)]
    if arguments.shape is not None:
        names = list(SHAPES) if arguments.shape == "all" else [arguments.shape]
        shapes = [SHAPES[name].scaled(arguments.scale) for name in names]
        for name in names:
            print(f"{name}: needs about {NEEDS[name]}", file=sys.stderr)
    for shape in shapes:
        ticker = ProgressTicker()
        cost = audit_cost(shape, arguments.times, ticker.say, arguments.master)
        ticker.close()
        print(json.dumps(cost.to_data()) if arguments.json else cost.to_text(), flush=True)
    return 0


def run_journal(arguments: Namespace) -> int:
    """A journal, read in three ways."""
    from ringcast_bench.journal.reading import reading_cost

    ticker = ProgressTicker()
    cost = reading_cost(arguments.rows, arguments.recorders, arguments.times, ticker.say)
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
        print(f"  in runs of {speed.batch:>2}: {speed.per_second:>12,.0f} messages per second")
    if arguments.growth:
        from ringcast_bench.growth import growth

        _print_lines(growth())
    return 0


def run_sink(arguments: Namespace) -> int:
    """Rows from many workers."""
    if arguments.spark:
        from ringcast_bench.sink.by_spark import table
    else:
        from ringcast_bench.sink.writers import table

    lines = table()
    if arguments.json:
        print(json.dumps(list(lines)))
    else:
        _print_lines(lines)
    return 0


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, flush=True)


RUNS: dict[str | None, Callable[[Namespace], int]] = {
    None: run_network,
    "net": run_net,
    "beside": run_beside,
    "form": run_form,
    "trace": run_trace,
    "micro": run_micro,
    "audit": run_audit,
    "journal": run_journal,
    "sim": run_sim,
    "sink": run_sink,
}
"""What is measured, by its name."""


def _add_beside(beside: ArgumentParser) -> None:
    beside.add_argument("tree", metavar="TREE", help="a revision of this repository, or a folder")
    beside.add_argument(
        "--only", metavar="NAME,…", default=SUPPRESS, help="these scenarios (the standard ones)"
    )
    beside.add_argument("--least", type=number, metavar="X", help="fail below X times its speed")
    _add_common(beside)


def _add_common(parser: ArgumentParser, **defaults: object) -> None:
    """Arguments that may stand before WHAT and behind it; only the first have a default."""
    parser.add_argument(
        "--repeats",
        type=whole,
        metavar="N",
        default=defaults.get("repeats", SUPPRESS),
        help="runs of each row; the median counts (3)",
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


def _names(option: str, text: str | None, known: Iterable[str]) -> list[str]:
    """The names in a list with commas; none for no text. Raises ConfigError."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    known = list(known)
    for name in names:
        if name not in known:
            raise ConfigError(f"{option}: there is no '{name}': choose from {', '.join(known)}")
    return names
