#!/usr/bin/env bash
# install.sh install|uninstall: puts notewarden on this machine as services, or takes it off again. Needs root.
#
# PREFIX   where the program lives (default /opt/notewarden)
# DESTDIR  a root below which everything is put instead, for packages and tests: nothing is started then
# VENV=no  leaves the program itself out: only units, accounts, folders and documents
#
# Uninstalling leaves what is yours: /etc/notewarden, /var/lib/notewarden*, and the accounts that own them.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/opt/notewarden}
root=${DESTDIR:-}
units=$root/etc/systemd/system
commands=(notewarden ask)

fail() {
  printf '%s\n' "$*" >&2
  exit 2
}

live() {
  [ -z "$root" ] && [ -d /run/systemd/system ]
}

require_root() {
  [ -n "$root" ] || [ "$(id -u)" = 0 ] || fail "Installing services needs root: sudo make install"
}

install_program() {
  [ "${VENV:-yes}" = yes ] || return 0
  rm -rf build  # what an earlier version left there would be packed again
  NOTEWARDEN_EDITABLE=no bash deploy/make-venv.sh "$root$prefix" requirements.lock
  rm -rf build
  [ -z "$root" ] || sed -i "1s|^#!$root|#!|" $(grep -lI "^#!$root" "$root$prefix"/bin/*)
  local python
  python=$(readlink -f "$root$prefix/bin/python")
  case $python in
    /root/* | /home/*)
      fail "The services' accounts cannot reach $python: install Python for everybody, or name another: PYTHON=… make install"
      ;;
  esac
}

install_files() {
  install -d -m 755 "$units" "$root/etc/sysusers.d" "$root/etc/tmpfiles.d" "$root/usr/local/bin"
  install -d -m 755 "$root$prefix/share/doc/notewarden" "$root/etc/notewarden"
  local unit
  for unit in deploy/systemd/*; do
    sed "s|/opt/notewarden|$prefix|g" "$unit" >"$units/$(basename "$unit")"
    chmod 644 "$units/$(basename "$unit")"
  done
  install -m 644 deploy/sysusers.d/notewarden.conf "$root/etc/sysusers.d/notewarden.conf"
  install -m 644 deploy/tmpfiles.d/notewarden.conf "$root/etc/tmpfiles.d/notewarden.conf"
  install -m 644 config.example.toml deploy/alerts.yml "$root$prefix/share/doc/notewarden/"
  install -m 644 docs/*.md "$root$prefix/share/doc/notewarden/"
  local name
  for name in "${commands[@]}"; do
    ln -sfn "$prefix/bin/$name" "$root/usr/local/bin/$name"
  done
}

uninstall() {
  local unit
  for unit in deploy/systemd/*; do
    ! live || systemctl disable --now --quiet "$(basename "$unit")" 2>/dev/null || true
    rm -f "$units/$(basename "$unit")"
  done
  rm -f "$root/etc/sysusers.d/notewarden.conf" "$root/etc/tmpfiles.d/notewarden.conf"
  local name
  for name in "${commands[@]}"; do
    [ "$(readlink "$root/usr/local/bin/$name")" != "$prefix/bin/$name" ] || rm -f "$root/usr/local/bin/$name"
  done
  [ -e "$root$prefix/bin/notewarden" ] && rm -rf "${root:?}$prefix" || rm -rf "$root$prefix/share/doc/notewarden"
  ! live || systemctl daemon-reload
  echo "Gone. Left as it is: $root/etc/notewarden, $root/var/lib/notewarden, $root/var/lib/notewarden-database."
}

case ${1:-} in
  install)
    require_root
    install_program
    install_files
    if live; then
      systemd-sysusers
      systemd-tmpfiles --create notewarden.conf
      systemctl daemon-reload
    fi
    echo "Installed. Next: $prefix/share/doc/notewarden/admin-guide.md"
    ;;
  uninstall)
    require_root
    uninstall
    ;;
  *) fail "usage: install.sh install|uninstall" ;;
esac
