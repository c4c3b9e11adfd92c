#!/bin/bash
# As the image does: at the first start it sets InfluxDB up on a port of its own, with what the
# environment says, and runs the scripts of its directory; then it runs InfluxDB.
set -euo pipefail

[[ -x /usr/local/bin/influxd ]] || exec /start_1.sh

export INFLUXD_BOLT_PATH=/var/lib/influxdb2/influxd.bolt
export INFLUXD_SQLITE_PATH=/var/lib/influxdb2/influxd.sqlite
export INFLUXD_ENGINE_PATH=/var/lib/influxdb2/engine
export INFLUX_HOST=http://127.0.0.1:9999

id_of() { # QUERY: of the first object that the answer names
    [[ $(curl --fail --silent --header \
        @<(printf 'Authorization: Token %s' "$(<"$DOCKER_INFLUXDB_INIT_ADMIN_TOKEN_FILE")") \
        "$INFLUX_HOST/api/v2/$1") =~ \"id\":\ *\"([0-9a-f]+)\" ]] && echo "${BASH_REMATCH[1]}"
}

set_up() {
    local script
    INFLUXD_HTTP_BIND_ADDRESS=${INFLUX_HOST#*//} influxd &
    until curl --fail --silent --output /dev/null "$INFLUX_HOST/ping"; do sleep 0.1; done
    curl --fail --silent --show-error --output /dev/null --data-binary @- \
        "$INFLUX_HOST/api/v2/setup" <<END
{"username": "$DOCKER_INFLUXDB_INIT_USERNAME",
 "password": "$(<"$DOCKER_INFLUXDB_INIT_PASSWORD_FILE")",
 "token": "$(<"$DOCKER_INFLUXDB_INIT_ADMIN_TOKEN_FILE")",
 "org": "$DOCKER_INFLUXDB_INIT_ORG", "bucket": "$DOCKER_INFLUXDB_INIT_BUCKET"}
END
    DOCKER_INFLUXDB_INIT_ORG_ID=$(id_of "orgs?org=$DOCKER_INFLUXDB_INIT_ORG")
    DOCKER_INFLUXDB_INIT_BUCKET_ID=$(id_of "buckets?name=$DOCKER_INFLUXDB_INIT_BUCKET")
    export DOCKER_INFLUXDB_INIT_ORG_ID DOCKER_INFLUXDB_INIT_BUCKET_ID
    for script in /docker-entrypoint-initdb.d/*.sh; do
        bash "$script"
    done
    kill %1
    wait %1
}

[[ -e $INFLUXD_BOLT_PATH ]] || set_up
exec influxd
