"""The audit of a directory of traces as one call, from the session to the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ringcast.demo.play import Say
from ringcast.errors import ConfigError
from ringcast.spark import Report, audit, read_trace, session
from ringcast.spark.traces import explained
from ringcast.trace.rules import Rules


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is to be audited, where, and by which rules."""

    directory: str
    page: str | None = None
    master: str | None = None
    rules: Rules = field(default_factory=Rules)


def audit_directory(request: Request, say: Say) -> Report:
    """Audit, and compute all that is told of it. Raises ConfigError for what cannot be audited."""
    check_place(request.directory)
    say(f"Starting Spark on {request.master or 'this machine'} ...")
    spark = session(request.master)
    try:
        with explained(request.directory):
            trace = read_trace(spark, request.directory)
            say("Auditing ...")
            report = audit(trace, **request.rules._asdict())
            if request.page is not None:
                report.write_html(request.page)
            # All that needs Spark is computed here; what is left is plain data.
            _ = report.shown, report.measures
            return report
    finally:
        spark.stop()


def check_place(directory: str) -> None:
    """See to the simplest mistakes before Spark is started, which takes a while."""
    if "://" in directory:
        return
    place = Path(directory)
    try:
        is_there, is_empty = place.exists(), place.is_dir() and not any(place.iterdir())
    except OSError as error:
        raise ConfigError(f"{place} cannot be read: {error.strerror}.") from None
    if not is_there:
        raise ConfigError(
            f"There is no directory {place}: name the one that the members traced to."
        )
    if is_empty:
        raise ConfigError(f"There is no trace in {place}: its members wrote nothing, or elsewhere.")
