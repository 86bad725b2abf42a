"""These tests need TensorFlow: without it the folder is empty."""

import importlib.util
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

collect_ignore_glob = [] if importlib.util.find_spec("tensorflow") else ["test_*.py"]

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
