"""The report: one self-contained HTML page that opens from disk."""

from plremix.report.page import write_report

__all__ = ["write_report"]
