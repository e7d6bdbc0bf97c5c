package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/rogpeppe/go-internal/testscript"

	dmgbench "dmgbench/internal/cli"
	"dmgbench/internal/cli/clitest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"dmgbench":           func() { os.Exit(dmgbench.Run()) },
		"dmgbench-fleet":     func() { os.Exit(Run()) },
		"nats-server":        serveNATS,
		"dmgbench-simulated": simulate,
	})
}

// TestScripts reads like sessions of a user, with a server and agents as processes.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": clitest.Exits, "until": until},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, ".home")
			e.Setenv("HOME", home)
			e.Setenv("DMGBENCH_STATE", filepath.Join(e.WorkDir, "state"))
			e.Setenv("DMGBENCH_RUN_ENGINE", "inprocess")
			e.Defer(func() { // an agent in the background outlives a script that has failed
				files, _ := filepath.Glob(filepath.Join(e.WorkDir, "there/.local/share/dmgbench-fleet/*/pid"))
				for _, file := range files {
					text, _ := os.ReadFile(file)
					if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
				}
			})
			pair, err := nkeys.CreateUser()
			if err != nil {
				return err
			}
			seed, err := pair.Seed()
			if err != nil {
				return err
			}
			credentials := "-----BEGIN NATS USER JWT-----\ne30.e30.e30\n------END NATS USER JWT------\n\n" +
				"-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"
			if err := os.WriteFile(filepath.Join(e.WorkDir, "user.creds"), []byte(credentials), 0o600); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(e.WorkDir, "life.toml"), []byte(clitest.Life), 0o644)
		}})
}

// serveNATS is a server that is not ours: "nats-server FOLDER" writes its URL to a file there; "nats-server -c FILE" is that of a
// configuration.
func serveNATS() {
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: os.Args[1]}
	if os.Args[1] == "-c" {
		var err error
		if o, err = server.ProcessConfigFile(os.Args[2]); err != nil {
			panic(err)
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		panic(err)
	}
	go s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		panic("the server is not ready")
	}
	if os.Args[1] == "-c" {
		s.WaitForShutdown()
		return
	}
	if err := os.WriteFile(filepath.Join(os.Args[1], "url"), []byte(s.ClientURL()), 0o644); err != nil {
		panic(err)
	}
	s.WaitForShutdown() // by a signal, which the server handles
}

// until is "until PATTERN COMMAND [ARG…]": it repeats the command until it prints a line that matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND [ARG...]")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	for last := time.Now().Add(30 * time.Second); ; <-time.After(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if out := ts.ReadFile("stdout"); err == nil && pattern.MatchString(out) {
			return
		} else if time.Now().After(last) {
			ts.Fatalf("no line matches %s in:\n%s%s", args[0], out, bytes.TrimSpace([]byte(ts.ReadFile("stderr"))))
		}
	}
}
