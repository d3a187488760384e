#!/usr/bin/env bash
# rolling-restart.sh NAME…: restart brokers of this machine one after the other, such as broker-a broker-b.
#
# NAME is the instance of gantry-broker@NAME.service, with the settings /etc/gantry/NAME.conf. For each
# broker: `mqadmin drainBroker` takes the sends away and waits for the consumers, systemd restarts the
# unit, and the script waits until the broker is ready and registered. A replica (controller mode, slave,
# DLedger) is restarted without a drain, since another replica takes over. After a failure the script
# stops: the other brokers keep running, and a broker that could not be drained is writable again.
#
#   GANTRY_ETC        folder of the settings (/etc/gantry)
#   GANTRY_BIN        folder of python (/opt/gantry/.venv/bin)
#   DRAIN_SECONDS     maximum wait for the consumers of a broker (600)
#   ROUTE_SECONDS     interval at which producers ask for routes (30)
#   READY_SECONDS     maximum wait for a restarted broker, which may check its store (900)
set -euo pipefail

etc=${GANTRY_ETC:-/etc/gantry}
bin=${GANTRY_BIN:-/opt/gantry/.venv/bin}
if [ "$#" = 0 ]; then
    sed -n '2,14p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
fi
# An EnvironmentFile of systemd is no shell script: & and $ are plain characters of a value.
if [ -r "$etc/gantry.env" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
        [[ $line =~ ^[[:space:]]*(NAMESRV_ADDR|MQADMIN_TOOLS_FILE|ROCKETMQ_[A-Za-z0-9_]+)=(.*[^[:space:]])?[[:space:]]*$ ]] || continue
        key=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
        if [[ $value =~ ^\"(.*)\"$ || $value =~ ^\'(.*)\'$ ]]; then
            value=${BASH_REMATCH[1]}
        fi
        export "$key=$value"
    done <"$etc/gantry.env"
fi

# setting NAME KEY DEFAULT : the last value of a key in the settings of a broker.
setting() {
    local value
    value=$(sed -n "s/^[[:space:]]*$2[[:space:]]*[=:][[:space:]]*//p" "$etc/$1.conf" | tail -n 1)
    printf '%s\n' "${value:-$3}"
}

is_replica() {
    [ "$(setting "$1" enableControllerMode false)" = true ] || [ "$(setting "$1" brokerRole ASYNC_MASTER)" = SLAVE ] ||
        [ "$(setting "$1" enableDLegerCommitLog false)" = true ]
}

# is_ready PORT : the side port says that the store accepts messages and the broker is registered.
is_ready() {
    "$bin/python" - "$1" <<'PYTHON'
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    opener.open(f"http://127.0.0.1:{sys.argv[1]}/readyz", timeout=5)
except OSError:
    sys.exit(1)
PYTHON
}

not_ready() {
    echo "$1 is not ready: see journalctl -u gantry-broker@$1" >&2
    exit 1
}

for name in "$@"; do
    [ -r "$etc/$name.conf" ] || { echo "$etc/$name.conf cannot be read: no such broker?" >&2; exit 2; }
done

for name in "$@"; do
    if is_replica "$name"; then
        echo "$name is a replica: no drain"
    else
        "$bin/python" -u -m core_broker.mqadmin drainBroker -b "$(setting "$name" brokerName "$name")" \
            -t "${DRAIN_SECONDS:-600}" -r "${ROUTE_SECONDS:-30}"
    fi
    end=$((SECONDS + ${READY_SECONDS:-900}))
    timeout "${READY_SECONDS:-900}" systemctl restart "gantry-broker@$name.service" || not_ready "$name"
    until is_ready "$(setting "$name" httpPort 5559)"; do
        if systemctl is-failed --quiet "gantry-broker@$name.service" || [ "$SECONDS" -ge "$end" ]; then
            not_ready "$name"
        fi
        sleep 0.2
    done
    echo "$name runs again"
done
