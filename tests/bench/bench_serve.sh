#!/bin/sh
# Fifty clients at once ask the server for runs while two searches work: latencies, and what 10,000 requests leave behind in memory.
# Run by `./dev bench`, which sets ORRERY_BUILD (a release build) and ORRERY_SCENARIOS. Exit 1 above 100 ms for 99 of 100
# requests, or where the server and its workers grew by more than 8 MiB over the last 8,000 requests.
set -eu
command -v python3 > /dev/null || { echo "no python3: skipped"; exit 0; }
exec python3 "$(dirname "$0")/serve_load.py" "$ORRERY_BUILD/orrery" "${1:-10000}" "${2:-50}"
