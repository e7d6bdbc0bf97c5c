package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"dmgbench/internal/clock"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// call executes one command line in this process.
func call(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Main(t.Context(), strings.NewReader(""), &out, &err, args, env)
	return code, out.String(), err.String()
}

func TestHelp(t *testing.T) {
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard}
	seen := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if strings.Contains(c.CommandPath(), "completion") || c.Name() == "help" { // cobra's own
			return
		}
		seen++
		path := strings.Fields(strings.TrimPrefix(c.CommandPath(), "dmgbench"))
		code, text, errs := call(t, nil, append(path, "--help")...)
		require.Zero(t, code, path)
		assert.Empty(t, errs, path)
		for line := range strings.Lines(text) {
			assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, "%v: %q", path, line)
		}
		assert.Contains(t, text, "EXIT STATUS", path)
		assert.Contains(t, text, "Examples:", path)
		assert.NotContains(t, text, "string ", "%v: a flag does not say what its value is", path)
		for line := range strings.Lines(c.Example) {
			assert.True(t, strings.HasPrefix(line, "  dmgbench "), "%v: example %q", path, line)
		}
		assert.Equal(t, strings.ToLower(c.Short[:1]), c.Short[:1], path)
	}
	walk(a.newRootCommand())
	assert.Greater(t, seen, 12)
}

// seam gives what a command makes of its arguments, environment and settings, and executes nothing.
func seam[O any](t *testing.T, env []string, build func(*app, func(O) error) *cobra.Command, args ...string) (got O, ran bool, err error) {
	t.Helper()
	a := &app{in: strings.NewReader(""), out: io.Discard, err: io.Discard, env: environment(env), settings: viper.New(), clock: clock.NewReal()}
	root := a.newRootCommand()
	cmd := build(a, func(o O) error { got, ran = o, true; return nil })
	for _, c := range root.Commands() {
		if c.Name() == cmd.Name() {
			root.RemoveCommand(c)
		}
	}
	root.AddCommand(cmd)
	root.SetArgs(append([]string{cmd.Name()}, args...))
	err = root.ExecuteContext(t.Context())
	return got, ran, err
}

func buildRun(a *app, f func(runOptions) error) *cobra.Command {
	return a.newRunCommand(func(_ context.Context, o runOptions) error { return f(o) })
}

func buildResume(a *app, f func(resumeOptions) error) *cobra.Command {
	return a.newResumeCommand(func(_ context.Context, o resumeOptions) error { return f(o) })
}

func TestFlagsBecomeOptions(t *testing.T) {
	run, ran, err := seam(t, nil, buildRun, "quick", "gold-standard", "--on", "/a b", "--on", "x=/c", "--sets", "2", "--yes", "--seed", "0", "--format", "json")
	require.NoError(t, err)
	require.True(t, ran)
	assert.Equal(t, runOptions{sessionOptions: sessionOptions{Engine: "auto", Format: "json", On: []string{"/a b", "x=/c"}},
		Plans: []string{"quick", "gold-standard"}, Sets: 2, Yes: true, Seed: "0"}, run)
	_, ran, err = seam(t, nil, buildRun, "quick", "--workers", "0")
	assert.Error(t, err)
	assert.False(t, ran)

	resume, ran, err := seam(t, nil, buildResume, "runs/x", "--keep")
	require.NoError(t, err)
	require.True(t, ran)
	assert.Equal(t, resumeOptions{sessionOptions: sessionOptions{Engine: "auto", Format: "text", Keep: true}, Dir: "runs/x"}, resume)

	report, _, err := seam(t, nil, (*app).newReportCommand, "a", "b", "--format", "html")
	require.NoError(t, err)
	assert.Equal(t, reportOptions{Dirs: []string{"a", "b"}, Format: "html"}, report)

	export, _, err := seam(t, []string{"DMGBENCH_EXPORT_TABLE=steps"}, (*app).newExportCommand, "a")
	require.NoError(t, err)
	assert.Equal(t, exportOptions{Dirs: []string{"a"}, Format: "csv", Table: "steps"}, export)
}

func TestSettingsFillFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "dmgbench", "config.toml")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	text := "[run]\non = [\"/a b\", \"x=/c\"]\nrounds = 5\nscale = 0.5\nyes = true\nsets = 2\n[resume]\nkeep = true\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	env := []string{"DMGBENCH_CONFIG=" + file, "DMGBENCH_RUN_ROUNDS=7", "DMGBENCH_RUN_SETS=3"}
	run, _, err := seam(t, env, buildRun, "quick", "--sets", "4")
	require.NoError(t, err)
	assert.Equal(t, runOptions{sessionOptions: sessionOptions{Engine: "auto", Format: "text", On: []string{"/a b", "x=/c"}},
		Plans: []string{"quick"}, Scale: 0.5, Yes: true, Rounds: "7", Sets: 4}, run)
	resume, _, err := seam(t, env, buildResume, "x")
	require.NoError(t, err)
	assert.True(t, resume.Keep)

	// A folder with blanks in the environment is one folder.
	run, _, err = seam(t, []string{"DMGBENCH_RUN_ON=/my disk"}, buildRun, "quick")
	require.NoError(t, err)
	assert.Equal(t, []string{"/my disk"}, run.On)
	if runtime.GOOS == "linux" { // without DMGBENCH_CONFIG the user's own file is read
		run, _, err = seam(t, []string{"XDG_CONFIG_HOME=" + dir}, buildRun, "quick")
		require.NoError(t, err)
		assert.Equal(t, "5", run.Rounds)
	}
	for variable, says := range map[string]string{
		"DMGBENCH_RUN_ROUNDS=many":   `reading --rounds: "many" is neither a whole number nor auto`,
		"DMGBENCH_RUN_SETS=many":     `reading DMGBENCH_RUN_SETS: "many" is not a whole number`,
		"DMGBENCH_RUN_YES=perhaps":   `reading DMGBENCH_RUN_YES: "perhaps" is not true or false`,
		"DMGBENCH_RUN_ENGINE=floppy": "reading --engine: ",
	} {
		_, ran, err := seam(t, []string{variable}, buildRun, "quick")
		assert.ErrorContains(t, err, says)
		assert.False(t, ran)
		code, _, _ := call(t, []string{variable, "HOME=" + dir}, "run", "quick", "--dry-run")
		assert.Equal(t, exitUsage, code, variable)
	}
}
