package hdiutil

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fails are the answers, by the end of their names, that have to be or may be failures, with the classes that the driver
// has to give them. All other commands of a capture succeed.
var fails = map[string]struct {
	always  bool
	classes []Class
}{
	"/detach-busy": {true, []Class{Busy}}, "/compact-attached": {true, []Class{Locked, Busy}}, "/resize-attached": {true, []Class{Locked, Busy}},
	"/attach-wrong": {true, []Class{Auth}}, "missing/attach": {true, []Class{NotFound}}, "missing/diskutil-attach": {true, []Class{NotFound}},
	"missing/detach": {true, []Class{NotFound}}, "missing/eject": {true, []Class{NotFound}}, "language/german": {true, []Class{NotFound}},
	"junk/attach": {true, []Class{NotImage}}, "junk/imageinfo": {true, []Class{NotImage}}, "junk/diskutil-info": {true, []Class{NotImage}},
	"exists/create": {true, []Class{Exists}}, "option/attach": {true, []Class{Invalid}}, "verb/hdiutil": {true, []Class{Unsupported, Invalid}},
	"verb/diskutil": {true, []Class{Unsupported, Invalid}},
	// What a system does not have, or cannot do with a format.
	"/attach-again": {false, []Class{Busy, Locked}}, "/create": {false, []Class{Unsupported}}, "/verify": {false, []Class{Unsupported}},
	"/compact": {false, []Class{Unsupported}}, "/imageinfo": {false, []Class{Unsupported, NotImage}}, "fs-ms-dos-fat32/attach": {false, []Class{NoFileSystem}},
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

// differs compares an answer with what the driver expects: "" if it is as expected.
func (a answer) differs() string {
	r := row{Argv: strings.Fields(a.command), Status: a.status, Stdout: string(a.stdout), Stderr: string(a.stderr)}
	ends := slices.Collect(maps.Keys(fails))
	slices.SortFunc(ends, func(x, y string) int { return len(y) - len(x) })
	n := slices.IndexFunc(ends, func(end string) bool { return strings.HasSuffix(a.name, end) })
	switch {
	case a.status != 0 && n < 0:
		return fmt.Sprintf("it fails with status %d: %s%s", a.status, a.stdout, a.stderr)
	case a.status != 0:
		if e := r.failure(); !slices.Contains(fails[ends[n]].classes, e.Class) {
			return fmt.Sprintf("%q is read from status %d: %s%s", e.Class.name, a.status, a.stdout, a.stderr)
		}
		return ""
	case n >= 0 && fails[ends[n]].always:
		return "it succeeds"
	case parsers[a.reads] == nil:
		return ""
	}
	v, err := parsers[a.reads](r)
	switch wantsMount, format := strings.Contains(strings.ToLower(a.command), "-mountpoint"), strings.TrimPrefix(filepath.Dir(a.name), "to-"); {
	case err != nil:
		return fmt.Sprintf("reading it as %s: %v", a.reads, err)
	case a.reads == "attach" && (v["mount"] != "") != wantsMount:
		return fmt.Sprintf("it is mounted on %q", v["mount"])
	case a.reads == "imageinfo" && strings.HasPrefix(a.name, "to-") && v["format"] != format:
		return fmt.Sprintf("it has the format %q", v["format"])
	}
	return ""
}

// Every capture that is kept is as the driver expects: those of Macs, as people send them (dmgbench doctor --capture), and
// one of hdiutil for Linux. What differs in a new one is listed by its answers.
func TestCaptures(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(apple, "captures", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders, "the capture of hdiutil for Linux is missing")
	for _, dir := range folders {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			list := readCapture(t, dir)
			assert.Greater(t, len(list), 100, "the capture was cut off")
			for i, a := range list {
				if d := a.differs(); d != "" {
					t.Errorf("%03d %s (%s): %s", i+1, a.name, a.command, d)
				}
			}
		})
	}
}
