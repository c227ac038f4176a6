#!/usr/bin/env bash
# The README's first two commands, as they stand there, on bare Debian systems: python3, python3-venv, make and git.
#
#   tests/fresh/bare_debian.sh trixie forky
#
# Each system is made in a temporary folder, and sees this machine's network and certificates, nothing else of it: a
# clone of the last commit, a user who is not root, an empty environment. Mounts and processes live in namespaces of
# their own and end with the script.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" = 0 ] || { echo "test-fresh: run it as root: it makes a system in a folder" >&2; exit 1; }
command -v debootstrap > /dev/null || { echo "test-fresh: install debootstrap (apt-get install debootstrap)" >&2; exit 1; }
[ $# -gt 0 ] || { echo "usage: $0 SUITE…, such as trixie" >&2; exit 2; }

mirror=http://deb.debian.org/debian
packages=python3,python3-venv,make,git,ca-certificates
mapfile -t commands < <(sed -n 's/^\$ \(make .*\)/\1/p' README.md | head -n 2)
[ ${#commands[@]} = 2 ] || { echo "test-fresh: the README no longer begins with two commands" >&2; exit 1; }

for suite in "$@"; do
    system=$(mktemp -d)
    chmod 755 "$system"
    trap 'rm -rf --one-file-system "$system"' EXIT
    rules=/usr/share/debootstrap/scripts/$suite
    [ -e "$rules" ] || rules=/usr/share/debootstrap/scripts/sid  # a suite that is newer than this debootstrap
    echo "── $suite: a bare system"
    debootstrap --variant=minbase --include=$packages "$suite" "$system" $mirror "$rules" > "$system.log" 2>&1 || {
        tail -n 5 "$system.log" >&2
        exit 1
    }
    rm -f "$system.log"
    cp /etc/resolv.conf "$system/etc/resolv.conf"
    cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
    chroot "$system" useradd --create-home newcomer
    git clone --quiet --no-hardlinks . "$system/home/newcomer/siltstone"
    chroot "$system" chown --recursive newcomer:newcomer /home/newcomer/siltstone
    for command in "${commands[@]}"; do
        echo "── $suite, $(chroot "$system" python3 --version): $command"
        # shellcheck disable=SC2016
        unshare --mount --pid --fork --kill-child --mount-proc="$system/proc" bash -euc '
            mount --rbind /dev "$1/dev"
            exec chroot --userspec=newcomer:newcomer "$1" \
                env -i HOME=/home/newcomer PATH=/usr/local/bin:/usr/bin:/bin TERM=dumb bash -c "cd ~/siltstone && $2"
        ' - "$system" "$command"
    done
    rm -rf --one-file-system "$system"
done
