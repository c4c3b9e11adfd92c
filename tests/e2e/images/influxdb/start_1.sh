#!/bin/bash
# Debian's 1.6, as the image of 2.x does: set up on a port of its own, then run.
set -euo pipefail

store=/var/lib/influxdb2
export INFLUXDB_META_DIR=$store/meta INFLUXDB_DATA_DIR=$store/data INFLUXDB_DATA_WAL_DIR=$store/wal
export INFLUXDB_REPORTING_DISABLED=true INFLUXDB_MONITOR_STORE_ENABLED=false
export INFLUXDB_HTTP_AUTH_ENABLED=true INFLUXDB_HTTP_LOG_ENABLED=false
export INFLUXDB_DATA_QUERY_LOG_ENABLED=false INFLUXDB_BIND_ADDRESS=127.0.0.1:8088

ask() { # STATEMENT
    influx -port 9999 -username admin -password "$(</run/secrets/influxdb_admin_password)" \
        -execute "$1"
}

set_up() {
    INFLUXDB_HTTP_BIND_ADDRESS=127.0.0.1:9999 influxd -config /dev/null &
    until curl --fail --silent http://127.0.0.1:9999/ping; do sleep 0.1; done
    ask "CREATE USER admin WITH PASSWORD '$(</run/secrets/influxdb_admin_password)' WITH ALL PRIVILEGES"
    ask "CREATE DATABASE hostbench"
    ask "CREATE RETENTION POLICY samples ON hostbench DURATION 30d REPLICATION 1"
    ask "CREATE USER hostbench WITH PASSWORD '$(</run/secrets/influxdb_password)'"
    ask "GRANT ALL ON hostbench TO hostbench"
    ask "CREATE USER grafana WITH PASSWORD '$(</run/secrets/influxdb_read_password)'"
    ask "GRANT READ ON hostbench TO grafana"
    kill %1
    wait %1
}

[[ -e $INFLUXDB_META_DIR/meta.db ]] || set_up
exec influxd -config /dev/null
