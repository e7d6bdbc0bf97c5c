# What the scripts that install programs for the tests share: source it, with the name that messages begin with in $what.

have() { command -v "$1" >/dev/null 2>&1; }

# limit SECONDS COMMAND...: ends what hangs, and shows what a command said only if it fails.
limit() {
	local log seconds=$1
	shift
	have timeout && set -- timeout -k 10 "$seconds" "$@"
	log=$("$@" 2>&1 </dev/null) || {
		echo "$what: not done: $*" >&2
		tail -n 8 <<<"$log" >&2
		return 1
	}
}

apt() {
	local as_root=()
	[ "$(id -u)" = 0 ] || as_root=(sudo -n)
	limit 240 "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
		-o DPkg::Lock::Timeout=60 "$@"
}
