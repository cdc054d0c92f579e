#!/bin/sh
# A million calls of liborrery, every tenth a run: how long a small run takes, and that the process stays as large as it was
# (at most 2 MiB more over the last four fifths). Run by `./dev bench`, which sets ORRERY_BUILD (a release build) and
# ORRERY_SCENARIOS. Exit 1 when it has grown.
set -eu
exec "$ORRERY_BUILD/tests/api_calls" "${1:-1000000}" "$ORRERY_SCENARIOS/examples"
