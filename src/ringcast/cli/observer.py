"""The member that `ringcast top` and `ringcast ui` are: it sends and reads nothing."""

from __future__ import annotations

import getpass
import os
from argparse import ArgumentParser, Namespace

from ringcast import sync
from ringcast.cli.stack import (
    add_key_argument,
    add_stack_arguments,
    add_timeout_argument,
    chosen_stack,
)
from ringcast.cli.watching import start_log_of_joins
from ringcast.runtime.ops.key_reload import reload_at_hangup


def add_observer_arguments(parser: ArgumentParser) -> None:
    """The arguments that both commands have."""
    parser.add_argument("group", metavar="GROUP", help="the name of the group")
    parser.add_argument(
        "--name", default="", help="what the others see in their views (watch-USER-PROCESS)"
    )
    add_timeout_argument(parser)
    add_stack_arguments(parser)
    add_key_argument(parser)


def join_as_observer(arguments: Namespace) -> sync.Group:
    """Join the group to watch it, and say whom that waits for when it takes longer than usual.

    Raises ConfigError, JoinFailed, Timeout.
    """
    start_log_of_joins()
    group = sync.join(
        arguments.group,
        chosen_stack(arguments),
        name=arguments.name or f"watch-{_user()}-{os.getpid()}",
        timeout=arguments.timeout,
        receive=False,
        key_file=arguments.key_file,
    )
    reload_at_hangup(group)
    return group


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A user without a name.
        return str(os.getuid())
