"""Before any training: can this log density be trained on, and what is known of it."""
