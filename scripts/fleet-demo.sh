#!/bin/sh
# A fleet on one machine: a server and three agents as processes, each with a folder
# of its own, the plan quick on all, the results fetched and compared by host.
# It deletes all that it makes. It wants bin/ of `make build`.
set -eu
bin=$(cd "$(dirname "$0")/../bin" && pwd)
PATH=$bin:$PATH
export PATH
dir=$(mktemp -d)
pids=
agents="alpha beta gamma"

clean() {
	status=$?
	trap - EXIT INT TERM
	# Agents first, so that they can end their runs while the server answers.
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	[ "$status" = 0 ] || tail -n 20 "$dir"/*.log >&2
	rm -rf "$dir"
	exit "$status"
}
trap clean EXIT
trap 'exit 130' INT TERM

DMGBENCH_STATE=$dir/state
export DMGBENCH_STATE
echo "The three agents of this demonstration share one machine, on which they measure one after"
echo "the other: a difference between them has no meaning."
echo

dmgbench-fleet serve >"$dir/serve.log" 2>&1 &
server=$!
pids=$server
until grep -q '^serving' "$dir/serve.log"; do
	kill -0 $server || exit 1
	sleep 0.1
done
cat "$dir/serve.log"

for name in $agents; do
	mkdir "$dir/$name"
	dmgbench-fleet add-machine $name --to "$dir/$name.join" 2>"$dir/$name.log"
	dmgbench-fleet join "$dir/$name.join" --on "$dir/$name" --engine inprocess --tag demo >"$dir/$name.log" 2>&1 &
	pids="$! $pids"
done
until [ "$(dmgbench-fleet status | grep -c ' idle ')" = 3 ]; do sleep 0.2; done

dmgbench-fleet submit quick --hosts tag=demo --engine inprocess --sets 1 --rounds 3
echo
dmgbench-fleet results --to "$dir/runs" --wait
echo
dmgbench-fleet status
echo
dmgbench compare "$dir"/runs/* --by host
