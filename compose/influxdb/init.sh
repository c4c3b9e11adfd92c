#!/bin/bash
# Runs once, in InfluxDB's container, when its image has set itself up: adds the bucket of the short
# retention, and two users of the v1 API with no more rights than they need. A bucket named
# database/policy is what the v1 API finds by itself.
set -euo pipefail

token=/run/secrets/influxdb_admin_token
samples_s=$((30 * 24 * 3600))

# post PATH: the body comes on standard input and the token from a file, for a command line would
# show them to everybody on the host. Prints the answer.
post() {
    curl --fail --silent --show-error --data-binary @- \
        --header @<(printf 'Authorization: Token %s\n' "$(<"$token")") "$INFLUX_HOST$1"
}

id_of() { # an answer names the object's own id first
    [[ $(cat) =~ \"id\":\ *\"([0-9a-f]+)\" ]] && echo "${BASH_REMATCH[1]}"
}

permission() { # ACTION BUCKET
    printf '{"action": "%s", "resource": {"type": "buckets", "id": "%s", "orgID": "%s"}}' \
        "$1" "$2" "$org"
}

add_user() { # NAME PASSWORD-FILE PERMISSION...
    local name=$1 password=$2 permissions id
    shift 2
    permissions=$(IFS=,; echo "$*")
    id=$(post /private/legacy/authorizations <<END | id_of
{"orgID": "$org", "token": "$name", "description": "$name", "permissions": [$permissions]}
END
    )
    post "/private/legacy/authorizations/$id/password" <<<"{\"password\": \"$(<"$password")\"}"
}

org=$DOCKER_INFLUXDB_INIT_ORG_ID
results=$DOCKER_INFLUXDB_INIT_BUCKET_ID
samples=$(post /api/v2/buckets <<END | id_of
{"orgID": "$org", "name": "$DOCKER_INFLUXDB_INIT_BUCKET/samples",
 "retentionRules": [{"type": "expire", "everySeconds": $samples_s}]}
END
)

read_both=("$(permission read "$results")" "$(permission read "$samples")")
write_both=("$(permission write "$results")" "$(permission write "$samples")")
add_user hostbench /run/secrets/influxdb_password "${read_both[@]}" "${write_both[@]}"
add_user grafana /run/secrets/influxdb_read_password "${read_both[@]}"
