#!/bin/sh
# The Python half of the docs as a doctest: check_python_docs.sh LIBRARY SOURCE PAGE... (LIBRARY "-": the package as installed
# for $PYTHON). Files that a page saves are there. Exit 77 where there is no Python or the library has a sanitizer.
set -eu
python=${PYTHON:-python3}
command -v "$python" >/dev/null || { echo "no $python: skipped"; exit 77; }
library=$1
source=$(cd "$2" && pwd)
shift 2
if [ "$library" != - ]; then
    if nm -D "$library" | grep -q __asan_init; then
        echo "a library with sanitizers: skipped"
        exit 77
    fi
    export ORRERY_LIBRARY="$library" PYTHONPATH="$source/python"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$source/scenarios" "$work/scenarios"
cd "$work"
for page in "$@"; do
    awk '/^```json [^ ]+$/ { file = $2; next } /^```/ { file = ""; next } file != "" { print > file }' "$source/$page"
    PYTHONDONTWRITEBYTECODE=1 "$python" - "$source/$page" <<'PYTHON'
import doctest, re, sys
text = open(sys.argv[1], encoding="utf-8").read()
blocks = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
test = doctest.DocTestParser().get_doctest(blocks, {}, sys.argv[1], sys.argv[1], 0)
result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
print(f"{sys.argv[1]}: {result.attempted} examples, {result.failed} failed")
sys.exit(result.failed > 0 or result.attempted == 0)
PYTHON
done
