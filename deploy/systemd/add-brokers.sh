#!/usr/bin/env bash
# add-brokers.sh N: settings of N brokers of this machine, one per core, from those of broker-a.
#
# Writes /etc/gantry/broker-b.conf and so on, with the settings of /etc/gantry/broker-a.conf, and own name,
# ports and store; existing files stay. Then: systemctl enable --now gantry-broker@broker-b …
#
#   GANTRY_ETC        folder of the settings (/etc/gantry)
set -euo pipefail

PORT=10911 SIDE_PORT=5559 DISTANCE=10
etc=${GANTRY_ETC:-/etc/gantry}
count=${1:-}
if ! [[ $count =~ ^[0-9]+$ ]] || [ "$count" -lt 1 ] || [ "$count" -gt 26 ]; then
    sed -n '2,7p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
fi
letters=abcdefghijklmnopqrstuvwxyz
store=$(sed -n 's/^storePathRootDir=//p' "$etc/broker-a.conf" | tail -n 1)
[ -n "$store" ] || { echo "$etc/broker-a.conf has no storePathRootDir" >&2; exit 2; }
for ((i = 1; i < count; i++)); do
    name=broker-${letters:i:1}
    conf=$etc/$name.conf
    if [ -e "$conf" ]; then
        echo "$conf exists"
        continue
    fi
    cp -p "$etc/broker-a.conf" "$conf" # owner and mode: the settings may have secrets
    {
        grep -vE '^[[:space:]]*(brokerName|storePathRootDir|listenPort|haListenPort|httpPort)[[:space:]]*[=:]' "$etc/broker-a.conf"
        echo "brokerName=$name"
        echo "listenPort=$((PORT + i * DISTANCE))"
        echo "haListenPort=$((PORT + i * DISTANCE + 1))"
        echo "httpPort=$((SIDE_PORT + i * DISTANCE))"
        echo "storePathRootDir=$(dirname "$store")/$name"
    } >"$conf"
    echo "$conf is written; start it: systemctl enable --now gantry-broker@$name"
done
