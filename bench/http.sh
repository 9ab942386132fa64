#!/bin/sh
# Measures planrun beside wrk, bombardier and vegeta; bench/README.md says how to read what it prints.
#
#   bench/http.sh [-rounds 7] [-duration 5s] [-only closed] ...
#
# Peers are those on PATH. PEERS=folder adds a folder, into which those of them that Go can build are installed first.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

if [ -n "${PEERS:-}" ]; then
	mkdir -p "$PEERS"
	PEERS=$(cd "$PEERS" && pwd)
	[ -x "$PEERS/bombardier" ] || (cd "$scratch" && GOBIN=$PEERS go install github.com/codesenberg/bombardier@v1.2.6)
	[ -x "$PEERS/vegeta" ] || (cd "$scratch" && GOBIN=$PEERS go install github.com/tsenart/vegeta/v12@v12.13.0)
	PATH=$PEERS:$PATH
fi

cd "$root"
go build -o "$scratch/" ./cmd/planrun ./bench/server
go build -o "$scratch/bench" ./bench/http
"$scratch/bench" -server "$scratch/server" -planrun "$scratch/planrun" -plans "$root/bench/plans" -scratch "$scratch" "$@"
