"""The paper's experiments and what only they need: studies, rivals, targets, data, records and reports."""

__version__ = "0.1.0"
