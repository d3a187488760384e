#!/usr/bin/env bash
# Sets up what Gantry needs, and says plainly what it cannot.
#
#   tools/setup.sh venv      the virtual environment in .venv, with everything in requirements.lock
#   tools/setup.sh browser   Chromium, for the browser tests
#   tools/setup.sh clients   Node, npm, Maven, a JDK and Go, for the tests with foreign clients
#   tools/setup.sh gettext   GNU gettext, for the tests of the translations
#
# PYTHON=/path/to/python chooses the interpreter. Each step is quick when its work is done.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=.venv
UV_VERSION=0.13.8

say() { printf '%s\n' "$*" >&2; }

# The lock was resolved for 3.11, so that one is asked first.
find_python() {
    local name
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if "$name" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    say "Gantry needs Python 3.11 or newer, and none was found."
    say "Install it (Debian, Ubuntu: apt-get install python3 python3-venv), or set PYTHON=/path/to/python."
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        sudo -n "$@"
    else
        return 1
    fi
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 && return
    # A machine that never updated its lists knows no package at all.
    as_root apt-get update -qq >/dev/null 2>&1 &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

make_venv() {
    local python=$1
    "$python" -m venv "$VENV" 2>/dev/null && return
    say "$python has no venv module; asking apt-get for python3-venv."
    rm -rf "$VENV"
    apt_install python3-venv && "$python" -m venv "$VENV" && return
    rm -rf "$VENV"
    say "The virtual environment could not be made. Install your system's venv package (Debian, Ubuntu:"
    say "apt-get install python3-venv) and try again."
    exit 1
}

# uv takes half a minute where pip takes several; pip alone is enough. Both compile what they install:
# where PYTHONDONTWRITEBYTECODE is set, each start of the console would compile Django once more.
install_locked() {
    local python=$VENV/bin/python
    if [ "$("$VENV/bin/uv" --version 2>/dev/null | cut -d' ' -f2)" != "$UV_VERSION" ]; then
        "$python" -m pip install --quiet "uv==$UV_VERSION" 2>/dev/null || true
    fi
    if [ -x "$VENV/bin/uv" ]; then
        VIRTUAL_ENV=$PWD/$VENV "$VENV/bin/uv" pip install --quiet --compile-bytecode --require-hashes -r requirements.lock && return
        say "uv could not install the locked packages; trying pip."
    fi
    "$python" -m pip install --quiet --compile --require-hashes -r requirements.lock
}

set_up_venv() {
    local python
    if [ ! -x "$VENV/bin/python" ]; then
        python=$(find_python)
        say "Making $VENV with $python ($("$python" --version 2>&1)) and installing the locked packages."
        say "The first time this downloads about 600 MB (Spark is most of it) and takes a minute or two."
        make_venv "$python"
    fi
    if ! install_locked; then
        say "The locked packages could not be installed; the lines above say which. Nothing was started."
        exit 1
    fi
    build_kernel
    "$VENV/bin/python" -m compileall -q console core_broker namesrv spark_jobs trace || true
    touch "$VENV/.ready"
}

# Without it the broker works, at a fraction of the speed.
build_kernel() {
    if ! command -v cc >/dev/null || [ ! -e /usr/include/zlib.h ]; then
        apt_install gcc libc6-dev zlib1g-dev || true
    fi
    mkdir -p build
    "$VENV/bin/python" setup.py -q build_ext --inplace --parallel 2 >build/kernel.log 2>&1 || true
    "$VENV/bin/python" -c 'import core_broker.kernel.sends' 2>/dev/null ||
        say "The broker's kernel could not be compiled (build/kernel.log); the broker runs without it, more slowly."
}

# wants PACKAGES PROGRAM… : one of the programs, else the Debian packages that bring it.
wants() {
    local packages=$1 program
    shift
    for program in "$@"; do
        if command -v "$program" >/dev/null; then return; fi
    done
    say "Installing $packages for the tests."
    # shellcheck disable=SC2086 # several packages may stand in one word
    apt_install $packages ||
        say "$1 is missing and could not be installed: the tests that need it will be skipped. (apt-get install $packages)"
}

set_up_browser() {
    wants chromium chromium google-chrome
}

set_up_clients() {
    wants nodejs node
    wants npm npm
    wants maven mvn
    wants default-jdk-headless javac
    wants golang-go go
}

case "${1:-}" in
    venv) set_up_venv ;;
    browser) set_up_browser ;;
    clients) set_up_clients ;;
    gettext) wants gettext msgfmt ;;
    *) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac
