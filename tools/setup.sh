#!/usr/bin/env bash
# Sets up what Gantry needs, and says plainly what it cannot.
#
#   tools/setup.sh venv      the virtual environment in .venv, with everything in requirements.lock
#   tools/setup.sh browser   Chromium, for the browser tests
#   tools/setup.sh clients   Node, npm, Maven, a JDK and Go, for the tests with foreign clients; Rust is only looked for
#   tools/setup.sh charts    Helm and the schemas of Kubernetes in build/charts, checkov in build/policies
#   tools/setup.sh gettext   GNU gettext, for the tests of the translations
#
# PYTHON=/path/to/python chooses the interpreter. Each step is quick when its work is done.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=.venv
UV_VERSION=0.13.8
LOG=build/setup.log  # output of the steps
STEPS=5
REPORT_INTERVAL_S=30

# On a terminal, a message first clears the line that counts the seconds.
say() {
    if [ -t 2 ]; then printf '\r\033[K' >&2; fi
    printf '%s\n' "$*" >&2
}

step_number=0
reporter=

# step TEXT COMMAND… : runs one step, with its number, the elapsed time and the last line of its output.
# A terminal shows one line that counts; a log gets a line at the start, one every 30 s, and one at the end.
step() {
    local text=$1 began=$SECONDS status=0 label
    shift
    step_number=$((step_number + 1))
    label="[$step_number/$STEPS] $text"
    mkdir -p "${LOG%/*}"
    printf '== %s\n' "$label" >>"$LOG"
    if [ ! -t 2 ]; then say "$label …"; fi
    report "$label" "$began" &
    reporter=$!
    "$@" || status=$?
    end_report
    if [ "$status" = 0 ]; then
        say "$label: done, $((SECONDS - began)) s"
    else
        say "$label: failed after $((SECONDS - began)) s"
    fi
    return "$status"
}

report() {
    local label=$1 began=$2 columns
    if [ -t 2 ]; then
        columns=$(tput cols 2>/dev/null || echo 80)
        while :; do
            printf '\r\033[K%s' "$(last_output "$label, $((SECONDS - began)) s" | cut -c "1-$columns")" >&2
            sleep 1
        done
    fi
    while sleep "$REPORT_INTERVAL_S" >/dev/null 2>&1; do
        say "$(last_output "$label, $((SECONDS - began)) s")"
    done
}

# last_output LABEL : the label, and the last line of the step's output that names a package or a module.
last_output() {
    local line
    line=$(awk '/^== /{line=""} /^ *(building|Building|Downloading|Downloaded|Prepared|Installed|Collecting) /{line=$0} END{print line}' "$LOG")
    if [ -n "$line" ]; then printf '%s: %s' "$1" "${line#"${line%%[! ]*}"}"; else printf '%s …' "$1"; fi
}

end_report() {
    if [ -n "$reporter" ]; then
        kill "$reporter" 2>/dev/null || true
        wait "$reporter" 2>/dev/null || true
        reporter=
    fi
}
trap end_report EXIT

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
    "$python" -m venv "$VENV" >>"$LOG" 2>&1 && return
    say "$python has no venv module; asking apt-get for python3-venv."
    rm -rf "$VENV"
    apt_install python3-venv && "$python" -m venv "$VENV" >>"$LOG" 2>&1 && return
    rm -rf "$VENV"
    say "The virtual environment could not be made. Install your system's venv package (Debian, Ubuntu:"
    say "apt-get install python3-venv) and try again."
    return 1
}

# uv takes half a minute where pip takes several; pip alone is enough.
install_uv() {
    [ "$("$VENV/bin/uv" --version 2>/dev/null | cut -d' ' -f2)" = "$UV_VERSION" ] ||
        "$VENV/bin/python" -m pip install --progress-bar off "uv==$UV_VERSION" >>"$LOG" 2>&1 ||
        say "uv could not be installed; pip installs the packages."
}

install_locked() {
    if [ -x "$VENV/bin/uv" ]; then
        VIRTUAL_ENV=$PWD/$VENV "$VENV/bin/uv" pip install --no-progress --require-hashes -r requirements.lock >>"$LOG" 2>&1 && return
        say "uv could not install the locked packages; trying pip."
    fi
    "$VENV/bin/python" -m pip install --no-compile --progress-bar off --require-hashes -r requirements.lock >>"$LOG" 2>&1
}

# Where PYTHONDONTWRITEBYTECODE is set, each start of the console would compile Django once more. Some
# packages have files for other versions of Python: an error of one file is no failure.
compile_bytecode() {
    "$VENV/bin/python" -m compileall -q -j 0 "$VENV"/lib*/python*/site-packages console core_broker namesrv spark_jobs trace >>"$LOG" 2>&1 || true
}

set_up_venv() {
    local python
    rm -f "$LOG"
    if "$VENV/bin/python" -c 'import pip' 2>/dev/null; then
        step_number=1
    else
        rm -rf "$VENV" # an interrupted first step leaves an incomplete folder
        python=$(find_python)
        say "First set-up: packages of about 600 MB are downloaded (Spark is most of it), and the broker's kernel is compiled."
        say "The set-up takes two to four minutes; the output of the steps is in $LOG."
        step "virtual environment $VENV with $("$python" --version 2>&1)" make_venv "$python"
    fi
    step "installer uv $UV_VERSION" install_uv
    if ! step "packages of requirements.lock" install_locked; then
        tail -n 15 "$LOG" >&2
        say "The locked packages could not be installed; the lines above are the end of $LOG. Nothing was started."
        exit 1
    fi
    step "bytecode of all packages" compile_bytecode
    step "compiled kernel of the broker" build_kernel || true
    touch "$VENV/.ready"
}

# Without the kernel, the broker works at a fraction of the speed.
build_kernel() {
    if ! command -v cc >/dev/null || [ ! -e /usr/include/zlib.h ]; then
        say "A C compiler or zlib's header is missing; asking apt-get for gcc, libc6-dev and zlib1g-dev."
        apt_install gcc libc6-dev zlib1g-dev || true
    fi
    "$VENV/bin/python" setup.py build_ext --inplace --parallel 2 >>"$LOG" 2>&1 || true
    if ! "$VENV/bin/python" -c 'import core_broker.kernel.sends' 2>/dev/null; then
        say "The broker's kernel could not be compiled ($LOG); the broker runs without the kernel, more slowly."
        say "Install a C compiler and zlib's header (Debian, Ubuntu: apt-get install gcc libc6-dev zlib1g-dev), then:"
        say "rm $VENV/.ready && make up"
        return 1
    fi
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
    # Debian's cargo is too old for the client, and rustup is no package.
    command -v cargo >/dev/null ||
        say "cargo is missing: the tests with the Rust client will be skipped. (Install Rust 1.95 or newer: https://rustup.rs)"
}

# Environments of their own, since no program of Gantry needs the packages: 40 MB for Helm's library
# and the schemas, 190 MB for checkov.
set_up_charts() {
    add_environment build/charts deploy/chart/checks.lock "Helm's library and the schemas of Kubernetes"
    add_environment build/policies deploy/chart/policies.lock "checkov"
}

# add_environment FOLDER LOCK NAME : the locked packages in a virtual environment, for the tests of the chart.
add_environment() {
    local folder=$1 lock=$2 name=$3
    cmp -s "$lock" "$folder/installed" && return
    mkdir -p build
    say "Installing $name for the tests of the chart."
    if "$VENV/bin/uv" venv -q --clear -p "$VENV/bin/python" "$folder" >>"$LOG" 2>&1 &&
        "$VENV/bin/uv" pip install -q -p "$folder/bin/python" --require-hashes -r "$lock" >>"$LOG" 2>&1; then
        cp "$lock" "$folder/installed"
    else
        say "They could not be installed ($LOG); some tests of the chart will be skipped."
    fi
}

case "${1:-}" in
    venv) set_up_venv ;;
    browser) set_up_browser ;;
    clients) set_up_clients ;;
    charts) set_up_charts ;;
    gettext) wants gettext msgfmt ;;
    *) sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//'; exit 2 ;;
esac
