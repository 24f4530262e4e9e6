"""A run's folder: the sampler, what was asked and found (`run.json`), and the history (`history.jsonl`)."""

from pushforward.runs.reading import Run as Run
from pushforward.runs.reading import load_run as load_run
from pushforward.runs.writing import check_folder as check_folder
from pushforward.runs.writing import free_name as free_name
from pushforward.runs.writing import save_run as save_run
