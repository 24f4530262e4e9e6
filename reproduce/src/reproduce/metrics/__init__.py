"""Metrics that only the studies ask for."""
