package hdiutil

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// readers are the parsers by what an answer is read as.
var readers = map[string]func(out []byte) error{
	"attach":    func(out []byte) error { _, err := command.ParseAttach(out); return err },
	"info":      func(out []byte) error { _, err := command.ParseInfo(out); return err },
	"imageinfo": func(out []byte) error { _, err := command.ParseImageInfo(out); return err },
	"trims":     func(out []byte) error { _, err := command.ParseTrims(out, "/dev/disk0"); return err },
}

// known are the classes that failures of these answers have to be given.
var known = map[string][]Class{
	"detach-busy": {Busy}, "attach-wrong": {Auth}, "missing/attach": {NotFound}, "junk/attach": {NotImage},
	"exists/create": {Exists}, "resize-attached": {Locked}, "option/attach": {Invalid},
}

// answer is one line of answers.tsv as scripts/capture.sh writes it, with what the command printed.
type answer struct {
	status               int
	reads, name, command string
	stdout, stderr       []byte
}

// readCapture reads the folder of a capture. A command that printed nothing has no file.
func readCapture(t *testing.T, dir string) (list []answer) {
	text, err := os.ReadFile(filepath.Join(dir, "answers.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, f, 5, line)
		a := answer{reads: f[2], name: f[3], command: f[4]}
		a.status, err = strconv.Atoi(f[1])
		require.NoError(t, err, line)
		a.stdout, _ = os.ReadFile(filepath.Join(dir, f[0]+".out"))
		a.stderr, _ = os.ReadFile(filepath.Join(dir, f[0]+".err"))
		list = append(list, a)
	}
	return list
}

// Every capture that is kept is read by the parsers of today: those of Macs, as people send them
// (dmgbench doctor --capture), and one of hdiutil for Linux.
func TestCaptures(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(apple, "captures", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders, "the capture of hdiutil for Linux is missing")
	for _, dir := range folders {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			read := 0
			for _, a := range readCapture(t, dir) {
				if a.status == 0 {
					if r := readers[a.reads]; r != nil {
						assert.NoError(t, r(a.stdout), "%s: %s", a.name, a.stdout)
						read++
					}
					continue
				}
				for end, classes := range known {
					if strings.HasSuffix(a.name, end) {
						e := newToolError(call{doing: "asking", object: a.name, cmd: command.Command{Tool: command.Hdiutil}}, command.Result{Stdout: a.stdout, Stderr: a.stderr, Status: a.status}, nil)
						assert.Contains(t, classes, e.Class, "%s: status %d, %s", a.name, a.status, a.stderr)
						read++
					}
				}
			}
			assert.Greater(t, read, 30, "hardly anything was read")
		})
	}
}
