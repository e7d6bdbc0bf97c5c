package cli

import (
	"archive/tar"
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
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"dmgbench/internal/fleet"
)

// The scripts that run on the other machine.
var (
	//go:embed install.sh
	installScript string
	//go:embed uninstall.sh
	uninstallScript string
)

// addMachine is the command "add-machine".
func (a *app) addMachine(ctx context.Context, args []string) error {
	name, target := args[0], a.text("ssh")
	if err := fleet.CheckMachine(name); err != nil {
		return usageError("", "%w", err)
	}
	if a.text("nats") != "" {
		return a.addToOwnServer(ctx, name)
	}
	if target == "" {
		join, err := a.request(ctx, fleet.Add, name)
		if err != nil {
			return err
		}
		a.note("The next line is a secret. Save it as %s.join on that machine, and start there:", name)
		a.note("  dmgbench-fleet join %s.join --name %s --on DIR", name, name)
		return a.print("%s", join)
	}
	if len(a.list("on")) == 0 {
		return usageError("--on DIR is the folder there in which images are put", "reading --on: it is missing")
	}
	programs, err := a.programsFor(ctx, target) // first, as they may be missing
	if err != nil {
		return err
	}
	join, err := a.request(ctx, fleet.Add, name)
	if err != nil {
		return err
	}
	return a.install(ctx, target, name, programs, join)
}

// request has the running server carry out a verb for a machine.
func (a *app) request(ctx context.Context, verb, name string) (join string, err error) {
	f, err := a.openFleet()
	if err != nil {
		return "", err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return fleet.Request(ctx, f.NATS(), verb, name)
}

// addToOwnServer makes the consumer and the object store of a machine on a server
// that is not ours, and prints the rights that its user needs.
func (a *app) addToOwnServer(ctx context.Context, name string) error {
	if a.text("ssh") != "" {
		return usageError("copy its credentials there and start: dmgbench-fleet join --nats URL --creds FILE --name "+name,
			"reading --ssh: with --nats the keys are those of your server")
	}
	f, err := a.openFleet()
	if err != nil {
		return err
	}
	defer f.Close()
	js, err := jetstream.New(f.NATS())
	if err == nil {
		err = fleet.AddMachine(ctx, js, name, fleet.DefaultLimits())
	}
	if err != nil {
		return err
	}
	publish, subscribe := fleet.Permissions(name)
	a.note("The user of machine %s needs these rights; nsc adds it with:", name)
	return a.print("nsc add user %s --allow-pub '%s' --allow-sub '%s'", name, strings.Join(publish, ","),
		strings.Join(subscribe, ","))
}

// revokeMachine is the command "revoke".
func (a *app) revokeMachine(ctx context.Context, args []string) error {
	if _, err := a.request(ctx, fleet.Revoke, args[0]); err != nil {
		return err
	}
	return a.print("revoked the key of %s", args[0])
}

// removeMachine is the command "remove-machine". The agent is stopped first, so
// that it can end its run.
func (a *app) removeMachine(ctx context.Context, args []string) error {
	name := args[0]
	if err := fleet.CheckMachine(name); err != nil {
		return usageError("", "%w", err)
	}
	if target := a.text("ssh"); target != "" {
		if err := a.ssh(ctx, target, strings.NewReader(uninstallScript), a.stderr, "sh -s "+name); err != nil {
			return err
		}
	}
	if _, err := a.request(ctx, fleet.Remove, name); err != nil {
		return err
	}
	return a.print("removed machine %s", name)
}

// ssh runs a command line of a shell on another machine with the system's ssh,
// which may ask the user for a password.
func (a *app) ssh(ctx context.Context, target string, stdin io.Reader, stdout io.Writer, line string) error {
	cmd := exec.CommandContext(ctx, "ssh", "--", target, line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, a.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running a command on %q with ssh: %w", target, err)
	}
	return nil
}

// programsFor returns the paths of the programs for the system and the processor
// of another machine, by the names that they get there.
func (a *app) programsFor(ctx context.Context, target string) (map[string]string, error) {
	var answer strings.Builder
	if err := a.ssh(ctx, target, nil, &answer, "uname -sm"); err != nil {
		return nil, err
	}
	system, processor, _ := strings.Cut(strings.ToLower(strings.TrimSpace(answer.String())), " ")
	processor = strings.NewReplacer("x86_64", "amd64", "aarch64", "arm64").Replace(processor)
	suffix := "-" + system + "-" + processor
	programs := map[string]string{}
	for _, name := range []string{"dmgbench", "dmgbench-fleet"} {
		path := filepath.Join(a.text("binaries"), name+suffix)
		if _, err := os.Stat(path); a.text("binaries") == "" || err != nil {
			if suffix != "-"+runtime.GOOS+"-"+runtime.GOARCH {
				return nil, &statusError{fmt.Errorf("finding %s%s for %q: not there", name, suffix, target),
					"give the folder that has it: --binaries DIR", exitError}
			}
			self, err := os.Executable()
			if err != nil {
				return nil, err
			}
			if path = self; name == "dmgbench" {
				if path, err = dmgbenchProgram(); err != nil {
					return nil, err
				}
			}
		}
		programs[name] = path
	}
	return programs, nil
}

// install sends the programs, the join string and the scripts as a tar to another
// machine and starts the agent there. No argument of a process has the join string.
func (a *app) install(ctx context.Context, target, name string, programs map[string]string, join string) error {
	in, out := io.Pipe()
	go func() {
		t := tar.NewWriter(out)
		err := errors.Join(
			addText(t, "join", join), addText(t, "install.sh", installScript),
			addText(t, "uninstall.sh", uninstallScript))
		for name, path := range programs {
			err = errors.Join(err, addProgram(t, name, path))
		}
		out.CloseWithError(errors.Join(err, t.Close()))
	}()
	line := `sh -c 'umask 077; d=$(mktemp -d) && cd "$d" && tar xf - && sh ./install.sh "$@"; s=$?; rm -rf "$d"; exit $s' sh`
	for _, word := range append([]string{name}, a.agentFlags()...) {
		line += " " + quote(word)
	}
	defer in.Close()
	return a.ssh(ctx, target, in, a.stdout, line)
}

// addText adds a file that only its owner can read to a tar.
func addText(t *tar.Writer, name, text string) error {
	err := t.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600, ModTime: time.Now()})
	if err == nil {
		_, err = io.WriteString(t, text)
	}
	return err
}

func addProgram(t *tar.Writer, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return addText(t, name, string(data))
}

// agentFlags are the flags of join that were given to add-machine.
func (a *app) agentFlags() (words []string) {
	for _, name := range []string{"on", "input", "backing", "tag"} {
		for _, value := range a.list(name) {
			words = append(words, "--"+name+"="+value)
		}
	}
	if e := a.text("engine"); e != "" {
		words = append(words, "--engine="+e)
	}
	return words
}
