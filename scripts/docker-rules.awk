# awk -v bridges="NAME..." -f docker-rules.awk then=before BEFORE then=now NOW
#
# BEFORE and NOW are what iptables-save printed before a Docker Engine started and prints now. It
# prints what iptables-restore --noflush takes to delete what the engine left: the rules that name
# one of its bridges, its chains, which were not there before, and the jumps to them. All else stays.

BEGIN {
    split(bridges, names)
    for (i in names) is_ours[names[i]]
}

/^\*/ {
    table = $1
    split("", chains)
}

then == "before" {
    if (/^:/) known[table, $1]
    next
}

/^\*/ { print }

/^:DOCKER/ && !((table, $1) in known) { chains[substr($1, 2)] }

/^-A/ && !($2 in chains) {
    for (i = 3; i <= NF; i++)
        if ($i in is_ours || ($(i - 1) ~ /^-[jg]$/ && $i in chains)) {
            sub(/^-A/, "-D")
            print
            break
        }
}

/^COMMIT/ {
    for (chain in chains) print "-F " chain
    for (chain in chains) print "-X " chain
    print
}
