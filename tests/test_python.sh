#!/bin/sh
# The tests of the Python package on the library as built: test_python.sh LIBRARY SOURCE. Exit 77 where there is no pytest,
# or the library is built with a sanitizer that Python is not.
set -eu
if ! python3 -c 'import pytest' 2>/dev/null; then
    echo "no pytest for python3: skipped"
    exit 77
fi
if nm -D "$1" | grep -q __asan_init; then
    echo "a library with sanitizers: skipped"
    exit 77
fi
ORRERY_LIBRARY=$1 PYTHONPATH=$2/python PYTHONDONTWRITEBYTECODE=1 exec python3 -m pytest -q -p no:cacheprovider "$2/python/tests"
