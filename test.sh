#!/usr/bin/env bash
# Installs what the tests need and runs everything: formatting, vet, staticcheck, race tests, short fuzzing, freshness of
# generated files. With --long it also does what takes more than minutes.
set -euo pipefail
cd "$(dirname "$0")"

long=
case "${1-}" in
	"") ;;
	--long) long=yes ;;
	*) echo "usage: ./test.sh [--long]" >&2; exit 2 ;;
esac

step() { printf '\n== %s\n' "$*"; }

# The tests start PostgreSQL and MariaDB themselves, on private ports and in folders of their own; only the programs have to
# be there.
has_postgres() { command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; }
has_mariadb() { command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ]; }
# A browser opens the HTML report.
has_browser() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

install_what_is_missing() {
	local want=()
	command -v gcc >/dev/null || want+=(gcc libc6-dev) # the race detector links with it
	has_postgres || want+=(postgresql)
	has_mariadb || want+=(mariadb-server)
	has_browser || want+=(chromium)
	command -v xmllint >/dev/null || want+=(libxml2-utils) # checks JUnit files against a schema
	[ ${#want[@]} -gt 0 ] || return 0
	step "install ${want[*]}"
	local sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	# Nothing may be started by the packages: 101 forbids it for as long as this file is there.
	local policy=/usr/sbin/policy-rc.d
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' | $sudo tee $policy >/dev/null
		$sudo chmod +x $policy
		trap "$sudo rm -f $policy" EXIT
	fi
	$sudo apt-get update -q
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${want[@]}"
}
install_what_is_missing

step "formatting"
unformatted=$(git ls-files -z '*.go' | xargs -0 gofmt -l)
if [ -n "$unformatted" ]; then
	echo "gofmt would change:" "$unformatted" >&2
	exit 1
fi

step "modules"
go mod verify
go mod tidy -diff

step "vet"
go vet ./...
go vet -tags http3 ./drivers/...
for os in windows darwin; do
	GOOS=$os CGO_ENABLED=0 go vet ./...
done

step "staticcheck"
go tool staticcheck ./...

step "tests"
go test -race -timeout 20m ./...
go test -race -timeout 5m -tags http3 ./drivers/http/... ./drivers/download/...

# Every fuzz target for a short while; the corpora they found things with are ordinary test cases by now. The short while is a
# number of inputs: one in seconds may end as a failure on a busy machine (golang/go#75804), without any input that fails.
# What people write themselves, plans and expressions, is tried longest.
fuzz() { # folder, target
	[ -n "$long" ] || { go test -run '^$' -fuzz "^$2\$" -fuzztime 10000x -timeout 10m "$1"; return; }
	local seconds=30 log
	case "$1" in ./engine/plan | ./engine/expression) seconds=600 ;; esac
	log=$(mktemp)
	if ! go test -run '^$' -fuzz "^$2\$" -fuzztime "${seconds}s" -timeout 30m "$1" | tee "$log"; then
		grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input' "$log" || { rm "$log"; return 1; }
	fi
	rm "$log"
}
step "fuzzing"
grep -rlE '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
	for target in $(grep -hoE '^func Fuzz\w+' "$dir"/*_test.go | sed 's/^func //'); do
		fuzz "$dir" "$target"
	done
done

step "all good"
