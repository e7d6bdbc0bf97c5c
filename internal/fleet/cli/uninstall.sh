# Stops the agent that install.sh installed, and deletes its files:
# sh uninstall.sh NAME [keep]. With keep it only stops the agent.
set -eu
name=$1
service=dmgbench-fleet-$name
if [ "$(id -u)" = 0 ]; then
	dir=/usr/local/lib/dmgbench-fleet/$name unit=/etc/systemd/system/$service.service user=
else
	dir=$HOME/.local/share/dmgbench-fleet/$name unit=$HOME/.config/systemd/user/$service.service user=--user
fi
daemon=/Library/LaunchDaemons/$service.plist
if [ -f "$daemon" ]; then
	launchctl bootout "system/$service" || true
	rm -f "$daemon"
fi
if [ -f "$unit" ]; then
	systemctl $user disable --now "$service" 2>/dev/null || true
	rm -f "$unit"
	systemctl $user daemon-reload
fi
if [ -f "$dir/pid" ]; then
	pid=$(cat "$dir/pid")
	# After a restart of the computer the number may be that of another process.
	case $(ps -ww -o args= -p "$pid" 2>/dev/null) in
	*"$dir/"*)
		kill "$pid"
		# A run removes its images first.
		for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
			kill -0 "$pid" 2>/dev/null || break
			sleep 1
		done
		;;
	esac
	rm -f "$dir/pid"
fi
[ "${2-}" != keep ] || exit 0
if [ -x "$dir/dmgbench" ]; then
	# The images of a run that was to be resumed.
	DMGBENCH_STATE=$dir/state/state "$dir/dmgbench" clean >&2 || true
	rm -rf "$dir"
fi
rmdir "${dir%/*}" 2>/dev/null || true
echo "removed the agent $name"
