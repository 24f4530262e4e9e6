"""The paper's experiments and ours: frozen settings with presets in, records out."""
