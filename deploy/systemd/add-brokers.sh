#!/usr/bin/env bash
# add-brokers.sh N: settings of N brokers of this machine, one per core, from those of broker-a.
#
# Writes /etc/gantry/broker-b.conf and so on, with the settings of /etc/gantry/broker-a.conf, and own name,
# ports and store; existing files stay. Ports are ten apart, from those of broker-a.
# Then: systemctl enable --now gantry-broker@broker-b …
#
#   GANTRY_ETC        folder of the settings (/etc/gantry)
set -euo pipefail
shopt -s inherit_errexit

PORT=10911 SIDE_PORT=5559 DISTANCE=10 PORT_MAX=65535
etc=${GANTRY_ETC:-/etc/gantry}
count=${1:-}
if ! [[ $count =~ ^[0-9]+$ ]] || [ "$count" -lt 1 ] || [ "$count" -gt 26 ]; then
    sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
fi
letters=abcdefghijklmnopqrstuvwxyz
base=$etc/broker-a.conf

refuse() {
    echo "$1" >&2
    exit 2
}

# setting FILE KEY DEFAULT : the last value of a key.
setting() {
    local value
    value=$(sed -nE "s/^[[:space:]]*$2([[:space:]]*[=:]|[[:space:]])[[:space:]]*//p" "$1" | sed 's/[[:space:]]*$//' | tail -n 1)
    printf '%s\n' "${value:-$3}"
}

# port FILE KEY DEFAULT : a port of the settings.
port() {
    local value
    value=$(setting "$@")
    [[ $value =~ ^(-1|0|[1-9][0-9]{0,4})$ ]] || refuse "$1 has $2=$value, which is no port"
    printf '%s\n' "$value"
}

# distant PORT N : the port of the Nth further broker; 0 (any) and -1 (off) stay.
distant() {
    echo $(($1 > 0 ? $1 + $2 * DISTANCE : $1))
}

# paths FILE PATTERN : the keys with a value that match.
paths() {
    sed -nE "s/^[[:space:]]*($2)([[:space:]]*[=:]|[[:space:]])[[:space:]]*[^[:space:]=:].*/\1/p" "$1"
}

[ -r "$base" ] || refuse "$base cannot be read"
store=$(setting "$base" storePathRootDir "")
[ -n "$store" ] || refuse "$base has no storePathRootDir"
# Two brokers that write the same files destroy them; the lock of a store lies in storePathRootDir.
if [ "$count" -gt 1 ]; then
    for key in $(paths "$base" 'storePath[[:alnum:]]*|accessLogPath'); do
        [ "$key" = storePathRootDir ] || refuse "$base has $key: all brokers would write the same files. Remove $key, or write the other settings by hand."
    done
    if [ -r "$etc/gantry.env" ]; then
        for key in $(paths "$etc/gantry.env" 'ROCKETMQ_(STORE_?PATH|ACCESS_?LOG_?PATH)[A-Z_]*'); do
            refuse "$etc/gantry.env has $key: all brokers would write the same files. Remove $key."
        done
    fi
fi
listen=$(port "$base" listenPort "$PORT")
ha=$(port "$base" haListenPort 0)
[ "$ha" != 0 ] || [ "$listen" = 0 ] || ha=$((listen + 1))
side=$(port "$base" httpPort "$SIDE_PORT")

# used LISTEN HA SIDE : the ports of a broker, also the VIP port.
used() {
    local number
    for number in "$1" "$(($1 - 2))" "$2" "$3"; do
        [ "$number" -le 0 ] || echo "$number"
    done
}
all=$(for ((i = 0; i < count; i++)); do
    conf=$etc/broker-${letters:i:1}.conf
    if [ "$i" -gt 0 ] && [ -e "$conf" ]; then
        own=$(port "$conf" listenPort 0)
        own_ha=$(port "$conf" haListenPort 0)
        own_side=$(port "$conf" httpPort 0)
        used "$own" "$own_ha" "$own_side"
    else
        used "$(distant "$listen" "$i")" "$(distant "$ha" "$i")" "$(distant "$side" "$i")"
    fi
done | sort -n)
twice=$(uniq -d <<<"$all" | head -n 1)
[ -z "$twice" ] || refuse "port $twice would have two users: change listenPort, haListenPort or httpPort in $base"
last=$(tail -n 1 <<<"$all")
[ "${last:-0}" -le "$PORT_MAX" ] || refuse "port $last is above $PORT_MAX: choose lower ports in $base"

for ((i = 1; i < count; i++)); do
    name=broker-${letters:i:1}
    conf=$etc/$name.conf
    if [ -e "$conf" ]; then
        echo "$conf exists"
        continue
    fi
    cp -p "$base" "$conf" # owner and mode: the settings may have secrets
    {
        grep -vE '^[[:space:]]*(brokerName|storePathRootDir|listenPort|haListenPort|httpPort)[[:space:]]*([=:[:space:]]|$)' "$base"
        echo "brokerName=$name"
        echo "listenPort=$(distant "$listen" "$i")"
        echo "haListenPort=$(distant "$ha" "$i")"
        echo "httpPort=$(distant "$side" "$i")"
        echo "storePathRootDir=$(dirname "$store")/$name"
    } >"$conf"
    echo "$conf is written; start it: systemctl enable --now gantry-broker@$name"
done
