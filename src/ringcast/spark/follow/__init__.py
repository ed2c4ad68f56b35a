"""The continuous audit: traces are judged while members still write them."""

from ringcast.spark.follow.stream import audit_stream

__all__ = ["audit_stream"]
