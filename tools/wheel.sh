#!/usr/bin/env bash
# Builds dist/: a wheel with the compiled kernel for this Python, and the source distribution.
#
# auditwheel gives the wheel the name of the oldest manylinux that its modules run on. Where
# auditwheel or patchelf cannot be had, the wheel keeps the plain name linux_<machine>: such a
# wheel is for machines like this one.
set -euo pipefail
cd "$(dirname "$0")/.."

AUDITWHEEL=6.8.2
PATCHELF=0.19.3.0
PY=.venv/bin/python
WORK=build/wheel

rm -rf "$WORK"
mkdir -p "$WORK" dist
"$PY" setup.py -q egg_info --egg-base "$WORK" build --build-base "$WORK/build" bdist_wheel --dist-dir "$WORK/plain"
"$PY" setup.py -q egg_info --egg-base "$WORK" sdist --dist-dir dist
if ! .venv/bin/uv tool run -q --from "auditwheel==$AUDITWHEEL" --with "patchelf==$PATCHELF" \
    auditwheel -v repair --wheel-dir dist "$WORK"/plain/*.whl >"$WORK/auditwheel.log" 2>&1; then
    tail -n 3 "$WORK/auditwheel.log" >&2
    echo "auditwheel could not be used; the wheel fits machines like this one." >&2
    cp "$WORK"/plain/*.whl dist/
fi
ls -l dist
