# Installs and removes the agent of a machine. The first two verbs run here, the
# others on the machine $TARGET, over ssh:
#
#   deploy NAME BINARIES [FLAG of join]...   copies programs and join string there, and installs
#   withdraw NAME                            uninstalls
#   install NAME [FLAG of join]...           from the files in this folder; state of an earlier agent stays
#   uninstall NAME
#
# BINARIES is a folder with the programs of other systems, or "". Here the script
# gets, in the environment, SCRIPT (its own text), SELF (the path of
# dmgbench-fleet), SYSTEM (of this machine, as linux-amd64) and FOLDER (of the
# server).
set -eu
umask 077
verb=$1 name=$2
shift 2
service=dmgbench-fleet-$name
daemon=/Library/LaunchDaemons/$service.plist
if [ "$(id -u)" = 0 ]; then
	dir=/usr/local/lib/dmgbench-fleet/$name units=/etc/systemd/system user= wanted=multi-user.target
else
	dir=$HOME/.local/share/dmgbench-fleet/$name units=$HOME/.config/systemd/user user=--user wanted=default.target
fi

quote() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

# Others can see no argument and no file that has the join string.
deploy() {
	binaries=$1
	shift
	answer=$(ssh -- "$TARGET" uname -sm </dev/null)
	system=$(echo "$answer" | tr 'A-Z ' 'a-z-' | sed 's/x86_64/amd64/; s/aarch64/arm64/')
	copies=$(mktemp -d)
	trap 'rm -rf "$copies"' EXIT
	trap 'exit 130' INT TERM
	for program in dmgbench dmgbench-fleet; do
		if [ -n "$binaries" ]; then
			cp "$binaries/$program-$system" "$copies/$program"
		elif [ "$system" = "$SYSTEM" ]; then
			cp "${SELF%/*}/$program" "$copies/$program"
		else
			echo "$TARGET is $system, and this program $SYSTEM: --binaries names the folder with $program-$system" >&2
			exit 1
		fi
	done
	printf '%s\n' "$SCRIPT" >"$copies/agent.sh"
	"$SELF" add-machine "$name" --folder "$FOLDER" --to "$copies/join" 2>"$copies/log" || {
		cat "$copies/log" >&2
		exit 1
	}
	# tar would give the files to the owner that they have here.
	line="sh -c 'umask 077; d=\$(mktemp -d) && cd \"\$d\" && tar xof - && sh ./agent.sh install \"\$@\"; s=\$?; rm -rf \"\$d\"; exit \$s' sh"
	for word in "$name" "$@"; do
		line=$line$(quote "$word")
	done
	COPYFILE_DISABLE=1 tar cf - -C "$copies" dmgbench dmgbench-fleet join agent.sh | ssh -C -- "$TARGET" "$line"
}

withdraw() { printf '%s\n' "$SCRIPT" | ssh -- "$TARGET" "sh -s uninstall $name"; }

install() {
	stop
	mkdir -p "$dir"
	mv -f dmgbench dmgbench-fleet join "$dir/"
	{
		echo '#!/bin/sh'
		# Services start without them, and dmgbench needs both.
		echo "HOME=$(quote "$HOME" | cut -c 2-) PATH=$(quote "$PATH" | cut -c 2-)"
		echo 'export HOME PATH'
		echo 'cd "$HOME"'
		printf 'exec'
		for word in "$dir/dmgbench-fleet" join "$dir/join" --name "$name" --folder "$dir/state" --program "$dir/dmgbench" "$@"; do
			quote "$word"
		done
		printf ' >'
		quote "$dir/log"
		echo ' 2>&1 </dev/null'
	} >"$dir/run"
	if [ "$(uname -s)" = Darwin ] && [ -z "$user" ]; then
		# A daemon needs no consent to the local network. Without the process type
		# launchd would limit its disk and processor time.
		cat >"$daemon" <<EOF
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
<key>Label</key><string>$service</string>
<key>ProgramArguments</key><array><string>/bin/sh</string><string>$dir/run</string></array>
<key>RunAtLoad</key><true/>
<key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
<key>ProcessType</key><string>Interactive</string>
<key>ExitTimeOut</key><integer>60</integer>
</dict></plist>
EOF
		chmod 644 "$daemon"
		# An earlier daemon may not have ended yet.
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			launchctl bootstrap system "$daemon" && break
			sleep 1
		done
		launchctl print "system/$service" >/dev/null
		echo "started launchd daemon $service"
	elif systemctl $user show-environment >/dev/null 2>&1; then
		mkdir -p "$units"
		cat >"$units/$service.service" <<EOF
[Unit]
Description=dmgbench agent $name
Wants=network-online.target
After=network-online.target
[Service]
ExecStart=/bin/sh "$dir/run"
KillMode=mixed
TimeoutStopSec=60
Restart=always
RestartSec=10
RestartPreventExitStatus=2
[Install]
WantedBy=$wanted
EOF
		systemctl $user daemon-reload
		systemctl $user enable --now "$service" 2>/dev/null
		if [ -n "$user" ] && ! loginctl enable-linger >/dev/null 2>&1; then
			echo "the agent ends when you log out; an administrator can change that: loginctl enable-linger $(id -un)"
		fi
		sleep 1
		systemctl $user is-active --quiet "$service" || fail
		echo "started systemd $user unit $service"
	else
		nohup /bin/sh "$dir/run" >/dev/null 2>&1 </dev/null &
		echo $! >"$dir/pid"
		sleep 1
		kill -0 "$(cat "$dir/pid")" 2>/dev/null || fail
		echo "started the agent in the background, until this computer restarts"
	fi
}

fail() {
	cat "$dir/log" >&2
	exit 1
}

stop() {
	if [ -f "$daemon" ]; then
		launchctl bootout "system/$service" || true
		rm -f "$daemon"
	fi
	if [ -f "$units/$service.service" ]; then
		systemctl $user disable --now "$service" 2>/dev/null || true
		rm -f "$units/$service.service"
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
}

uninstall() {
	stop
	if [ -x "$dir/dmgbench" ]; then
		# The images of a run that was to be resumed.
		DMGBENCH_STATE=$dir/state/state "$dir/dmgbench" clean >&2 || true
		rm -rf "$dir"
	fi
	rmdir "${dir%/*}" 2>/dev/null || true
	echo "removed the agent $name"
}

"$verb" "$@"
