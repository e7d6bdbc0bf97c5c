package cli

import (
	"bytes"
	"cmp"
	"context"
	_ "embed" // for the scripts
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/agent"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/report"
	"dmgbench/internal/system/host"
	"dmgbench/internal/system/units"
)

// agentScript installs and removes agents. It is a script, as the other machine
// may have none of our programs.
//
//go:embed agent.sh
var agentScript string

// serve is the command "serve". It ends without an error when it is interrupted,
// which is the only way to end it.
func (a *app) serve(ctx context.Context, _ []string) error {
	limits := fleet.DefaultLimits()
	runs, err := units.ParseBytes(a.text("runs"))
	if err != nil {
		return usageError("reading --runs: %w", err)
	}
	limits.Runs, limits.Replicas = int64(runs), int(max(a.number("replicas"), 1))
	limits.Results = max(limits.Results, limits.Runs/16) // one flag helps against every full store
	if a.text("nats") != "" {
		if err := a.connect(); err != nil {
			return err
		}
		defer a.fleet.NATS.Close()
		return fleet.Setup(ctx, a.fleet.JetStream, limits)
	}
	folder, err := a.stateFolder("fleet")
	if err != nil {
		return err
	}
	o := broker.Options{Listen: a.text("listen"), Advertise: a.list("advertise"), Limits: limits, Log: a}
	isFirst := true
	return broker.Run(ctx, folder, o, func(s *broker.Server) {
		if !isFirst {
			a.note("the disk has room: the server has started again")
			return
		}
		isFirst = false
		reach := report.TextIf(a.text("listen") == "", " (this machine only; for others, add --listen 0.0.0.0:4222)")
		a.print("serving a fleet at %s%s", strings.Join(s.Addresses(), ", "), reach)
		a.print("add a machine: dmgbench-fleet add-machine NAME --to NAME.join --folder %q", folder)
	})
}

// addMachine is the command "add-machine". With --ssh the script executes it once
// more, without, for the join string: a machine that cannot be reached, or that
// the programs do not fit, keeps the key that it has.
func (a *app) addMachine(ctx context.Context, args []string) error {
	name := args[0]
	if a.text("nats") != "" {
		return a.addToOwnServer(ctx, name)
	}
	if a.text("ssh") != "" {
		if len(a.list("on")) == 0 {
			return usageError("reading --on: it is missing (it names the folder there in which images are put)")
		}
		flags := []string{a.text("binaries"), "--engine=" + a.text("engine")}
		for _, flag := range []string{"on", "input", "backing", "tag"} {
			for _, value := range a.list(flag) {
				flags = append(flags, "--"+flag+"="+value)
			}
		}
		return a.runScript(ctx, "deploy", name, flags...)
	}
	file := a.text("to")
	if file == "" {
		join, err := fleet.Request(ctx, a.fleet.NATS, fleet.Add, name)
		if err != nil {
			return err
		}
		a.note("The next line is a secret. Save it as a file that others cannot read, or use --to.")
		a.print("%s", join)
		return nil
	}
	// The machine gets its new key when there is a file for it.
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("making the file of the join string: %w", err)
	}
	join, err := fleet.Request(ctx, a.fleet.NATS, fleet.Add, name)
	if err == nil {
		_, err = fmt.Fprintln(f, join)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(file))
	}
	a.note("%s is a secret. Copy it to that machine, and start there:", file)
	a.note("  dmgbench-fleet join %s --name %s --on DIR", filepath.Base(file), name)
	return nil
}

// runScript executes a verb of the script. It uses the system's ssh, which may ask
// the user for a password.
func (a *app) runScript(ctx context.Context, verb, name string, args ...string) error {
	self, noSelf := os.Executable()
	folder, noFolder := a.stateFolder("fleet")
	// The name becomes a part of paths there.
	if err := cmp.Or(fleet.CheckMachine(name), noSelf, noFolder); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", agentScript, "agent.sh", verb, name}, args...)...)
	cmd.Env = append(os.Environ(), "SCRIPT="+agentScript, "SELF="+self, "SYSTEM="+runtime.GOOS+"-"+runtime.GOARCH,
		"FOLDER="+folder, "TARGET="+a.text("ssh"))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it deletes its copies
	// Both have what the other machine answers.
	out, errs := lineWriter{print: a.print}, lineWriter{print: a.note}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	out.flush()
	errs.flush()
	if err != nil {
		return fmt.Errorf("executing %q over ssh for machine %q: %w", verb, name, err)
	}
	return nil
}

// lineWriter prints each line that is written to it, without control characters.
type lineWriter struct {
	print func(format string, args ...any)
	rest  []byte // of a line that has not ended
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, ok := bytes.Cut(w.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		w.print("%s", line)
		w.rest = rest
	}
}

func (w *lineWriter) flush() {
	if len(w.rest) > 0 {
		w.print("%s", w.rest)
	}
}

// addToOwnServer makes the consumer and the object store of a machine on a server
// that is not ours, and prints the rights that its user needs.
func (a *app) addToOwnServer(ctx context.Context, name string) error {
	if err := fleet.AddMachine(ctx, a.fleet.JetStream, name, fleet.DefaultLimits()); err != nil {
		return fmt.Errorf("%w (dmgbench-fleet serve --nats makes the streams)", err)
	}
	publish, subscribe := fleet.Permissions(name)
	a.print("nsc add user %s --allow-pub '%s' --allow-sub '%s'", name, strings.Join(publish, ","),
		strings.Join(subscribe, ","))
	return nil
}

// revokeMachine is the command "revoke". The server closes the connections that
// use the key.
func (a *app) revokeMachine(ctx context.Context, args []string) error {
	_, err := fleet.Request(ctx, a.fleet.NATS, fleet.Revoke, args[0])
	return err
}

// removeMachine is the command "remove-machine". The agent is stopped first, so
// that it can end its run.
func (a *app) removeMachine(ctx context.Context, args []string) error {
	if a.text("ssh") != "" {
		if err := a.runScript(ctx, "withdraw", args[0]); err != nil {
			return err
		}
	}
	_, err := fleet.Request(ctx, a.fleet.NATS, fleet.Remove, args[0])
	return err
}

// purgeMachine is the command "purge".
func (a *app) purgeMachine(ctx context.Context, args []string) error {
	return fleet.PurgeMachine(ctx, a.fleet.JetStream, args[0])
}

// join is the command "join". It ends without an error when it is interrupted:
// the services that start it take any other status for a crash.
func (a *app) join(ctx context.Context, args []string) error {
	link, err := a.agentLink(append(args, "")[0])
	if err != nil {
		return usageError("%w", err)
	}
	c := agent.Config{Link: link, Tags: a.list("tag"), Engine: a.text("engine"), Log: a.note}
	for flag, paths := range map[string]*map[string]string{"on": &c.Places, "input": &c.Inputs, "backing": &c.Backing} {
		if *paths, err = a.paths(flag); err != nil {
			return err
		}
	}
	if len(c.Places) == 0 {
		return usageError("reading --on: it is missing (it names the folder in which images are put)")
	}
	if c.Folder, err = a.stateFolder(filepath.Join("agents", link.User)); err != nil {
		return err
	}
	if c.Measuring, err = host.StateDir(os.Getenv); err != nil {
		return err
	}
	self, _ := os.Executable()
	beside, _ := exec.LookPath(filepath.Join(filepath.Dir(self), "dmgbench"))
	c.Program = cmp.Or(a.text("program"), beside, "dmgbench") // the last one is on PATH
	return agent.Run(ctx, c)
}

// agentLink is how this machine reaches the fleet: a join string, from the
// argument, a file or stdin, or an address with a file of credentials. The name
// in a join string is that of its key, so that --name can only confirm it.
func (a *app) agentLink(arg string) (link fleet.Link, err error) {
	name := a.text("name")
	if file := a.text("creds"); file != "" {
		if err := a.checkSecret(file); err != nil {
			return link, err
		}
		return fleet.Link{URLs: []string{cmp.Or(a.text("nats"), arg)}, User: name, Credentials: file}, nil
	}
	text, err := a.joinString(arg)
	if err != nil {
		return link, err
	}
	if link, err = fleet.ParseLink(text); err != nil {
		return link, err
	}
	if name != "" && name != link.User {
		return link, fmt.Errorf("reading --name: the join string is for machine %q, not %q", link.User, name)
	}
	return link, nil
}

// maxJoinString is the most bytes of a file that are read as a join string.
const maxJoinString = 64 << 10

func (a *app) joinString(arg string) (string, error) {
	in := os.Stdin
	if arg != "-" {
		f, err := os.Open(arg)
		if err != nil && fleet.IsJoinString(arg) { // no file has a name as long
			a.note("warning: as an argument a join string is in the list of processes, which other users see, and in the " +
				"shell's history (give it as a file or on stdin)")
		}
		if err != nil {
			return arg, nil
		}
		defer f.Close()
		if err := a.checkSecret(arg); err != nil {
			return "", err
		}
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxJoinString))
	return string(text), err
}

// checkSecret refuses a file with a key that other users can read.
func (a *app) checkSecret(file string) error {
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 == 0 || a.isSet("insecure") {
		return nil // what is wrong with a file that is missing, its reader finds
	}
	return fmt.Errorf("reading the key in %q: other users can read it (chmod 600 %s, or --insecure)", file, file)
}

// paths are the values [NAME=]PATH of a flag by their names. An equals sign after
// a slash belongs to the path. A path that does not exist is an error here, as
// the agent would otherwise refuse each job because of it.
func (a *app) paths(flag string) (map[string]string, error) {
	out := map[string]string{}
	for _, value := range a.list(flag) {
		name, path, ok := strings.Cut(value, "=")
		if !ok || strings.ContainsAny(name, `/\`) {
			name, path = "", value
		}
		_, err := os.Stat(path)
		if err == nil && out[name] != "" {
			err = fmt.Errorf("%q is given twice", name)
		}
		if err != nil {
			return nil, usageError("reading --%s: %w", flag, err)
		}
		out[name] = path
	}
	return out, nil
}
