"""The audit: the guarantees of a group, checked over the traces of all its members."""

from ringcast.spark.audit.run import Report, audit

__all__ = ["Report", "audit"]
