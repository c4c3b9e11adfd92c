#!/usr/bin/env bash
# Functions of make-env.sh and make-far-host.sh: keys and certificates of our own CA in secrets/.

server_days=825 # the most that Apple's systems accept

new_key() {
    openssl ecparam -name prime256v1 -genkey -noout
}

# certify KEY SUBJECT DAYS OPTION...: a certificate for the key in the file KEY.
certify() {
    local key=$1 subject=$2 days=$3
    shift 3
    openssl req -x509 -new -key "$key" -subj "/CN=$subject" -sha256 -days "$days" \
        -addext "subjectKeyIdentifier = hash" -addext "authorityKeyIdentifier = keyid:always" "$@"
}

# certify_server KEY NAME...: one of our CA, for a server of these names and addresses.
certify_server() {
    local key=$1
    shift
    certify "$key" hostbench "$server_days" -CA secrets/ca.pem -CAkey secrets/ca.key \
        -addext "subjectAltName = $(alternatives "$@" | sort --unique | paste --serial --delimiters=,)" \
        -addext "basicConstraints = critical, CA:false" \
        -addext "keyUsage = critical, digitalSignature" \
        -addext "extendedKeyUsage = serverAuth"
}

alternatives() { # NAME...
    local name
    for name in "$@"; do
        if [[ $name == *:* || $name =~ ^[0-9]+(\.[0-9]+){3}$ ]]; then
            echo "IP:$name"
        elif [[ -n $name ]]; then
            echo "DNS:$name"
        fi
    done
}

# NAME of .env; the environment's comes first, as with Compose.
setting() {
    local name=$1 value
    value=$(sed -n "s/^$name=//p" .env | tail -n 1)
    value=${!name-$value}
    value=${value#[\"\']}
    echo "${value%[\"\']}"
}
