# Installs an agent from the programs, the join string and the scripts in this
# folder, and starts it: sh install.sh NAME [FLAG of join]... An earlier
# installation is replaced; its state stays.
set -eu
umask 077
name=$1
shift
service=dmgbench-fleet-$name
if [ "$(id -u)" = 0 ]; then
	dir=/usr/local/lib/dmgbench-fleet/$name units=/etc/systemd/system user= target=multi-user.target
else
	dir=$HOME/.local/share/dmgbench-fleet/$name units=$HOME/.config/systemd/user user=--user target=default.target
fi
sh ./uninstall.sh "$name" keep
mkdir -p "$dir"
chmod 700 dmgbench dmgbench-fleet
chmod 600 join
mv -f dmgbench dmgbench-fleet join "$dir/"

quote() { printf " '%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
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
	cat >"/Library/LaunchDaemons/$service.plist" <<EOF
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
	chmod 644 "/Library/LaunchDaemons/$service.plist"
	# An earlier daemon may not have ended yet.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		launchctl bootstrap system "/Library/LaunchDaemons/$service.plist" && break
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
WantedBy=$target
EOF
	systemctl $user daemon-reload
	systemctl $user enable --now "$service" 2>/dev/null
	if [ -n "$user" ] && ! loginctl enable-linger >/dev/null 2>&1; then
		echo "the agent ends when you log out; an administrator can change that: loginctl enable-linger $(id -un)"
	fi
	echo "started systemd $user unit $service"
else
	nohup /bin/sh "$dir/run" >/dev/null 2>&1 </dev/null &
	echo $! >"$dir/pid"
	sleep 1
	if ! kill -0 "$(cat "$dir/pid")" 2>/dev/null; then
		cat "$dir/log" >&2
		exit 1
	fi
	echo "started the agent in the background, until this computer restarts"
fi
