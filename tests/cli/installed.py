"""Packages that a test opens our files with: imported, or installed where the environment says that it may.

ORRERY_TEST_INSTALL=FOLDER lets tests install with pip into that folder, which later runs find again.
"""
import importlib
import os
import subprocess
import sys


def module(name, *packages):
    """The module; None: it is not here, and may not or cannot be installed from `packages` (pip's words)."""
    folder = os.environ.get("ORRERY_TEST_INSTALL")
    if folder:
        sys.path.append(folder)
    try:
        return importlib.import_module(name)
    except ImportError:
        if not folder:
            return None
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
           "--target", folder, *packages]
    if subprocess.run(pip, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
        return None
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
