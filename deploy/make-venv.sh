#!/usr/bin/env bash
# make-venv.sh FOLDER LOCKFILE: makes the virtual environment FOLDER and installs the pinned packages and notewarden.
#
# Works on a Debian or Ubuntu as it comes: without the module ensurepip (package python3-venv) an existing pip
# installs from outside; without that too it says what to install. Never uses sudo, never builds a package:
# every file comes ready-made and must match a hash of LOCKFILE.
set -euo pipefail

venv=$1
lock=$2

fail() {
  printf '%s\n' "$*" >&2
  exit 2
}

fits() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

choose_python() {
  if [ -n "${PYTHON:-}" ]; then
    fits "$PYTHON" || fail "PYTHON=$PYTHON is not a Python 3.11 or newer."
    printf '%s\n' "$PYTHON"
    return
  fi
  local name
  for name in python3 python3.14 python3.13 python3.12 python3.11; do
    if fits "$name"; then
      printf '%s\n' "$name"
      return
    fi
  done
  fail "notewarden needs Python 3.11 or newer; install it (sudo apt install python3) or name one: make PYTHON=…"
}

has_pip() {
  "$1" -m pip --version >/dev/null 2>&1
}

make_venv() {
  if "$python" -m venv --clear "$venv" >/dev/null 2>&1; then
    return
  fi
  has_pip "$python" && "$python" -m venv --clear --without-pip "$venv" && return
  rm -rf "$venv"
  fail "This Python can make no virtual environment: sudo apt install $(venv_package)"
}

# Debian's own python3 takes python3-venv, any other version of its packages pythonX.Y-venv.
venv_package() {
  case $("$python" -c 'import sys; print(sys.executable, sys.version_info[1])') in
    /usr/bin/python3\ *) echo python3-venv ;;
    *) "$python" -c 'import sys; print(f"python3.{sys.version_info[1]}-venv")' ;;
  esac
}

install() {
  if has_pip "$venv/bin/python"; then
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
  else
    has_pip "$python" || fail "There is no pip to install with: sudo apt install $(venv_package)"
    "$python" -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "$@"
  fi
}

python=$(choose_python)
fits "$venv/bin/python" || make_venv
echo "Installing the packages of $lock into $venv …" >&2
install --require-hashes --only-binary :all: --requirement "$lock"
if [ "${NOTEWARDEN_EDITABLE:-yes}" = yes ]; then
  install --no-deps --no-build-isolation --editable .
else
  install --no-deps --no-build-isolation .
fi
