#!/bin/sh
# The notebooks of the docs run on the library as built and say what they record: check_notebooks.sh [--fix] LIBRARY SOURCE (LIBRARY
# "-": the package as installed for $PYTHON). Exit 77 where there is no Python, or the library has a sanitizer that it has not.
set -eu
fix=
if [ "$1" = --fix ]; then
    fix=--fix
    shift
fi
python=${PYTHON:-python3}
command -v "$python" > /dev/null || { echo "no $python: skipped"; exit 77; }
source=$(cd "$2" && pwd)
if [ "$1" != - ]; then
    if nm -D "$1" | grep -q __asan_init; then
        echo "a library with sanitizers: skipped"
        exit 77
    fi
    ORRERY_LIBRARY=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
    export ORRERY_LIBRARY PYTHONPATH="$source/python"
fi
cd "$source"
# shellcheck disable=SC2086
PYTHONDONTWRITEBYTECODE=1 exec "$python" tests/run_notebook.py $fix docs/notebooks/*.ipynb
