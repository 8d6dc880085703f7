"""The report: one self-contained HTML page that opens from disk."""

from plremix.report.page import add_figures, write_report

__all__ = ["add_figures", "write_report"]
