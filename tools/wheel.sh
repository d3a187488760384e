#!/usr/bin/env bash
# Builds dist/: wheels with the compiled kernel, and the source distribution.
#
#   tools/wheel.sh        a wheel for the Python of .venv
#   tools/wheel.sh all    a wheel for each Python of the classifiers in pyproject.toml that is on the PATH or in
#                         pyenv's folder; fails with the names of the missing ones, unless PARTIAL=1
#
# auditwheel gives a wheel the name of the oldest manylinux that its modules run on. Where
# auditwheel or patchelf cannot be had, the wheel keeps the plain name linux_<machine>: such a
# wheel is for machines like this one. A wheel without the kernel is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."

AUDITWHEEL=6.8.2
PATCHELF=0.19.3.0
PY=$PWD/.venv/bin/python
UV=$PWD/.venv/bin/uv
WORK=build/wheel

# find_python VERSION : the path of an interpreter with this version, such as 3.13; nothing when there is none.
find_python() {
    local name
    for name in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if "$name" -c "import sys; raise SystemExit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null; then
            "$name" -c "import sys; print(sys.executable)"
            return
        fi
    done
}

# build PYTHON NAME : the wheel of an interpreter that has setuptools and Cython.
build() {
    local folder=$WORK/$2
    "$1" setup.py -q egg_info --egg-base "$WORK" build --build-base "$folder" bdist_wheel --dist-dir "$folder/plain"
    if ! "$PY" -m zipfile -l "$folder"/plain/*.whl | grep 'core_broker/kernel/sends\..*\.so' >/dev/null; then
        echo "The kernel could not be compiled for $("$1" --version)." >&2
        return 1
    fi
    if ! "$UV" tool run -q --from "auditwheel==$AUDITWHEEL" --with "patchelf==$PATCHELF" \
        auditwheel -v repair --wheel-dir dist "$folder"/plain/*.whl >"$folder/auditwheel.log" 2>&1; then
        tail -n 3 "$folder/auditwheel.log" >&2
        echo "auditwheel could not be used; the wheel fits machines like this one." >&2
        cp "$folder"/plain/*.whl dist/
    fi
}

# build_for VERSION PYTHON : the wheel of an interpreter, with build tools in an environment of its own.
build_for() {
    local environment=$WORK/environment-$1
    "$UV" venv -q -p "$2" "$environment"
    # shellcheck disable=SC2086 # one word for each requirement
    "$UV" pip install -q -p "$environment/bin/python" $kernel_tools
    build "$environment/bin/python" "$1"
}

rm -rf "$WORK"
mkdir -p "$WORK" dist
own=$("$PY" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [ "${1:-}" = all ]; then
    read_project() { "$PY" -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb'))['project']; print(*$1)"; }
    versions=$(read_project "[each.rpartition(' ')[2] for each in project['classifiers'] if ':: 3.' in each]")
    kernel_tools=$(read_project "project['optional-dependencies']['kernel']")
else
    versions=$own
fi
missing=
for version in $versions; do
    if [ "$version" = "$own" ]; then
        build "$PY" "$version"
        continue
    fi
    python=$(find_python "$version")
    if [ -n "$python" ]; then
        build_for "$version" "$python"
    else
        missing="$missing $version"
    fi
done
"$PY" setup.py -q egg_info --egg-base "$WORK" sdist --dist-dir dist
ls -l dist
if [ -n "$missing" ]; then
    echo "No wheel was built for Python$missing: no such interpreter is on the PATH or in pyenv's folder; PARTIAL=1 admits that." >&2
    [ -n "${PARTIAL:-}" ] || exit 1
fi
