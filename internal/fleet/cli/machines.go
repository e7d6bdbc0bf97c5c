package cli

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	_ "embed" // for the scripts
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
	"dmgbench/internal/fleet/agent"
	"dmgbench/internal/fleet/broker"
	"dmgbench/internal/system/units"
)

// The scripts that run on another machine.
var (
	//go:embed install.sh
	installScript []byte
	//go:embed uninstall.sh
	uninstallScript []byte
)

// serve is the command "serve". It ends without an error when it is interrupted,
// which is the only way to end it.
func (a *app) serve(ctx context.Context, _ []string) error {
	limits := fleet.DefaultLimits()
	runs, err := units.ParseBytes(a.text("runs"))
	if err != nil {
		return usageError("reading --runs: %w", err)
	}
	limits.Runs, limits.Replicas = int64(runs), int(max(a.number("replicas"), 1))
	if a.text("nats") != "" {
		if err := a.connect(); err != nil {
			return err
		}
		defer a.fleet.Close()
		return a.fleet.Setup(ctx, limits)
	}
	folder, err := a.stateFolder("fleet")
	if err != nil {
		return err
	}
	s, err := broker.Serve(folder, broker.Options{Listen: a.text("listen"), Advertise: a.list("advertise"),
		Limits: limits, Log: a})
	if err != nil {
		return err
	}
	defer s.Close()
	a.print("serving a fleet at %s", strings.Join(s.Addresses(), ", "))
	a.print("add a machine: dmgbench-fleet add-machine NAME --folder %s", quote(folder))
	if a.text("listen") == "" {
		a.print("only this machine reaches the server; for others, add --listen 0.0.0.0:4222")
	}
	<-ctx.Done()
	return nil
}

// addMachine is the command "add-machine". The programs are looked for first, as
// they may be missing.
func (a *app) addMachine(ctx context.Context, args []string) error {
	name, target := args[0], a.text("ssh")
	var files map[string][]byte
	var err error
	switch {
	case a.text("nats") != "":
		return a.addToOwnServer(ctx, name)
	case target != "" && len(a.list("on")) == 0:
		return usageError("reading --on: it is missing (it names the folder there in which images are put)")
	case target != "":
		if files, err = a.programsFor(ctx, target); err != nil {
			return err
		}
	}
	join, err := a.request(ctx, fleet.Add, name)
	if err != nil {
		return err
	}
	if target != "" {
		files["join"], files["install.sh"], files["uninstall.sh"] = []byte(join), installScript, uninstallScript
		return a.install(ctx, target, name, files)
	}
	a.note("The next line is a secret. Save it as %s.join on that machine, and start there:", name)
	a.note("  dmgbench-fleet join %s.join --name %s --on DIR", name, name)
	a.print("%s", join)
	return nil
}

// request has the running server carry out a verb for a machine.
func (a *app) request(ctx context.Context, verb, name string) (join string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return fleet.Request(ctx, a.fleet.NATS(), verb, name)
}

// addToOwnServer makes the consumer and the object store of a machine on a server
// that is not ours, with as many copies as the streams have, and prints the rights
// that its user needs.
func (a *app) addToOwnServer(ctx context.Context, name string) error {
	limits := fleet.DefaultLimits()
	js, err := jetstream.New(a.fleet.NATS())
	if err != nil {
		return err
	}
	s, err := js.Stream(ctx, fleet.Jobs)
	if err != nil {
		return fmt.Errorf("reading stream %s: %w (dmgbench-fleet serve --nats makes it)", fleet.Jobs, err)
	}
	limits.Replicas = s.CachedInfo().Config.Replicas
	if err := fleet.AddMachine(ctx, js, name, limits); err != nil {
		return err
	}
	publish, subscribe := fleet.Permissions(name)
	a.print("nsc add user %s --allow-pub '%s' --allow-sub '%s'", name, strings.Join(publish, ","),
		strings.Join(subscribe, ","))
	return nil
}

// revokeMachine is the command "revoke". The server closes the connections that
// use the key.
func (a *app) revokeMachine(ctx context.Context, args []string) error {
	_, err := a.request(ctx, fleet.Revoke, args[0])
	return err
}

// removeMachine is the command "remove-machine". The agent is stopped first, so
// that it can end its run.
func (a *app) removeMachine(ctx context.Context, args []string) error {
	if err := fleet.CheckMachine(args[0]); err != nil {
		return usageError("%w", err)
	}
	if target := a.text("ssh"); target != "" {
		if err := a.ssh(ctx, target, bytes.NewReader(uninstallScript), a.stdout, "sh -s "+args[0]); err != nil {
			return err
		}
	}
	_, err := a.request(ctx, fleet.Remove, args[0])
	return err
}

// ssh runs a command line of a shell on another machine with the system's ssh,
// which may ask the user for a password.
func (a *app) ssh(ctx context.Context, target string, stdin io.Reader, stdout io.Writer, line string) error {
	cmd := exec.CommandContext(ctx, "ssh", "-C", "--", target, line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, a.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running a command on %q with ssh: %w", target, err)
	}
	return nil
}

// programsFor reads the programs for the system and the processor of another
// machine: from the folder of --binaries, else those beside this one if they fit.
func (a *app) programsFor(ctx context.Context, target string) (map[string][]byte, error) {
	var answer strings.Builder
	if err := a.ssh(ctx, target, nil, &answer, "uname -sm"); err != nil {
		return nil, err
	}
	suffix := "-" + strings.NewReplacer(" ", "-", "x86_64", "amd64", "aarch64", "arm64").
		Replace(strings.ToLower(strings.TrimSpace(answer.String())))
	self, err := os.Executable()
	files := map[string][]byte{}
	for _, name := range []string{"dmgbench", "dmgbench-fleet"} {
		path := filepath.Join(a.text("binaries"), name+suffix)
		if a.text("binaries") == "" && suffix == "-"+runtime.GOOS+"-"+runtime.GOARCH {
			path = filepath.Join(filepath.Dir(self), name)
		}
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("finding the programs for %q: %w (--binaries names their folder)", target, err)
	}
	return files, nil
}

// install sends files to another machine, as a tar on stdin, and starts the agent
// there. No argument of a process has the join string, and no file of it can be
// read by another user. One connection is enough, as each may ask for a password.
func (a *app) install(ctx context.Context, target, name string, files map[string][]byte) error {
	var archive bytes.Buffer
	t := tar.NewWriter(&archive)
	for name, data := range files {
		// To memory, which does not fail.
		_ = t.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: time.Now()})
		_, _ = t.Write(data)
	}
	_ = t.Close()
	line := `sh -c 'umask 077; d=$(mktemp -d) && cd "$d" && tar xf - && sh ./install.sh "$@"; s=$?; rm -rf "$d"; exit $s' sh ` + name
	for _, flag := range []string{"on", "input", "backing", "tag"} {
		for _, value := range a.list(flag) {
			line += " " + quote("--"+flag+"="+value)
		}
	}
	return a.ssh(ctx, target, &archive, a.stdout, line+" "+quote("--engine="+a.text("engine")))
}

// quote is a word as a POSIX shell takes it.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// join is the command "join". It ends without an error when it is interrupted:
// the services that start it take any other status for a crash.
func (a *app) join(ctx context.Context, args []string) error {
	link, err := a.agentLink(append(args, "")[0])
	if err != nil {
		return usageError("%w", err)
	}
	c := agent.Config{Link: link, Tags: a.list("tag"), Engine: a.text("engine"), Program: a.text("program"), Log: a.note}
	for flag, paths := range map[string]*map[string]string{"on": &c.Places, "input": &c.Inputs, "backing": &c.Backing} {
		if *paths, err = a.paths(flag); err != nil {
			return usageError("reading --%s: %w", flag, err)
		}
	}
	if len(c.Places) == 0 {
		return usageError("reading --on: it is missing (it names the folder in which images are put)")
	}
	if c.Folder, err = a.stateFolder(filepath.Join("agents", link.User)); err != nil {
		return err
	}
	if c.Program == "" {
		self, _ := os.Executable()
		c.Program = filepath.Join(filepath.Dir(self), "dmgbench")
		if _, err := os.Stat(c.Program); err != nil {
			c.Program = "dmgbench" // on PATH
		}
	}
	if err = agent.Run(ctx, c); ctx.Err() != nil {
		return nil
	}
	return err
}

// agentLink is how this machine reaches the fleet: a join string, from the
// argument, a file or stdin, or an address with a file of credentials. The name
// in a join string is that of its key, so that --name can only confirm it.
func (a *app) agentLink(arg string) (link fleet.Link, err error) {
	const maxJoin = 64 << 10 // bytes
	name := a.text("name")
	if file := a.text("creds"); file != "" {
		return fleet.Link{URLs: []string{cmp.Or(a.text("nats"), arg)}, User: name, Credentials: file}, nil
	}
	text, err := []byte(arg), nil
	if arg == "-" {
		text, err = io.ReadAll(io.LimitReader(a.stdin, maxJoin))
	} else if data, e := os.ReadFile(arg); e == nil { // no file has a name as long as a join string
		text = data
	}
	if err == nil {
		link, err = fleet.ParseLink(string(text))
	}
	if err == nil && name != "" && name != link.User {
		err = fmt.Errorf("reading --name: the join string is for machine %q, not %q", link.User, name)
	}
	return link, err
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
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		out[name] = path
	}
	return out, nil
}
