"""Records in; tables, figures and a page out. Nothing here knows a model, so nothing here imports JAX."""

from reproduce.report.write import write_report as write_report
