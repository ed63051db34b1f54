#!/usr/bin/env bash
# Installs the peers of the tests: clients and tools from Debian's (or Ubuntu's) packages. Safe to run again; if everything
# is installed, it does nothing and needs no permissions. Tests of a missing peer are skipped, or fail with CI=true.
set -euo pipefail

# A path or command name, and the package that installs it; "py:" marks a module of the system's Python.
peers=(
  "chromium chromium"
  "chromium-headless-shell chromium-headless-shell"
  "certutil libnss3-tools"
  "openssl openssl"
  "curl curl"
  "wget wget"
  "git git"
  "/usr/bin/python3 python3"
  "py:requests python3-requests"
  "py:grpc python3-grpcio"
  "py:websockets python3-websockets"
  "http httpie"
  "go golang-go"
  "java default-jdk-headless"
  "javac default-jdk-headless"
  "mitmdump mitmproxy"
  "ncat ncat"
  "proxychains4 proxychains4"
  "py:socks python3-socks"
  "/usr/sbin/squid squid-openssl"
  "tinyproxy tinyproxy-bin"
  "microsocks microsocks"
  "/usr/sbin/danted dante-server"
  "ab apache2-utils"
  "wrk wrk"
  "strace strace"
  "faketime faketime"
  "xmllint libxml2-utils"
  "/etc/ssl/certs/ca-certificates.crt ca-certificates"
)

is_there() {
  case "$1" in
    py:*) /usr/bin/python3 -c "import ${1#py:}" 2>/dev/null ;;
    /*) test -e "$1" ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

missing=()
for peer in "${peers[@]}"; do
  read -r what package <<<"$peer"
  is_there "$what" || missing+=("$package")
done

if [ ${#missing[@]} -eq 0 ]; then
  echo "Test peers: all ${#peers[@]} are there"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "Test peers: ${missing[*]} missing, and there is no apt-get here; install them by hand" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
echo "Test peers: installing ${missing[*]}"
# Waits for another running package manager, and retries failing mirrors.
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
"${as_root[@]}" "${apt[@]}" update
"${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null

for peer in "${peers[@]}"; do
  read -r what package <<<"$peer"
  is_there "$what" || { echo "Test peers: $package is installed, but $what is still missing" >&2; exit 1; }
done
echo "Test peers: done"
