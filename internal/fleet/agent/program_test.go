package agent

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

const fakeStatus = `{"kind":"status","plan":"tiny","case":"c","do":"write","round":1,"rounds":2,"waiting":true}`

// pretend is dmgbench as tests need it. A behaviour is a list of what the attempts do, such as "130 137 0"; the last one
// is done again. "done" is "0".
func pretend(behaviour string, args []string) int {
	switch {
	case behaviour == "never":
		panic("dmgbench is executed")
	case args[0] == "version":
		fmt.Println("dmgbench fake")
		return 0
	case args[0] == "clean" || args[0] == "check":
		return 0
	case slices.Contains(args, "--dry-run"):
		if behaviour == "nospace" {
			fmt.Fprintln(os.Stderr, "this run would be refused: no space")
		}
		return 0
	}
	dir := args[1]
	if args[0] == "run" {
		i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--out=") })
		dir = strings.TrimPrefix(args[i], "--out=")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		panic(err)
	}
	name := filepath.Join(dir, "journal.jsonl")
	before, _ := os.ReadFile(name)
	attempt := strings.Count(string(before), "\n")
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, `{"kind":"session"}`)
	f.Close()
	_ = os.WriteFile(filepath.Join(dir, ".dmgbench-run"), []byte("run-"+filepath.Base(filepath.Dir(dir))+"\n"), 0o600)
	list := strings.Fields(strings.ReplaceAll(behaviour, "done", "0"))
	return pretendExit(list[min(attempt, len(list)-1)])
}

func pretendExit(what string) int {
	fmt.Fprintln(os.Stderr, `{"kind":"warning","text":"a warning"}`)
	fmt.Fprintln(os.Stderr, fakeStatus)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return 130
	}
	switch what {
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "noise":
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 3<<20))
		fmt.Fprintln(os.Stderr, "\x00\xff{")
		return 0
	}
	fmt.Fprintln(os.Stderr, `{"kind":"error","text":"the reason","exit":`+what+`}`)
	var code int
	_, _ = fmt.Sscan(what, &code)
	return code
}

func TestExitStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		behaviour, state, text string
		attempts               int
	}{
		{"0", fleet.Done, "", 1},
		{"noise", fleet.Done, "", 1},
		{"3", fleet.Incomplete, "", 1},
		{"1", fleet.Failed, "the reason", 1},
		{"2", fleet.Failed, "the reason", 1},
		{"4 0", fleet.Done, "", 2},
		{"130 0", fleet.Done, "", 2},
		{"killed 0", fleet.Done, "", 2},
		{"nospace", fleet.Refused, "no space", 0},
	} {
		t.Run(c.behaviour, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, smallLimits)
			config := s.config(fake(t, c.behaviour))
			s.start(config)
			s.submit(tinyJob("a"))
			r := s.await("a", 0)
			assert.Equal(t, c.state, r.State)
			assert.Contains(t, r.Error, c.text)
			assert.Equal(t, c.attempts, r.Attempts)
			if c.attempts > 0 {
				assert.Equal(t, "run-a-0", r.Run)
				logs, err := s.js.Stream(t.Context(), fleet.Logs("mac"))
				require.NoError(t, err)
				first, err := logs.GetMsg(t.Context(), 1)
				require.NoError(t, err)
				assert.Equal(t, "warning a warning", string(first.Data), "of the first pause")
				assert.NotEqual(t, first.Data, s.get(fleet.Logs("mac"), fleet.LogSubject("mac", "a")), "what came later")
			}
			s.empty(config)
		})
	}
}
