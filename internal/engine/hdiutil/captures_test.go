package hdiutil

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine/hdiutil/argv"
	"dmgbench/internal/engine/hdiutil/capture"
	"dmgbench/internal/engine/hdiutil/parse"
	"dmgbench/internal/engine/hdiutil/proc"
)

// readers are the parsers by what an answer is read as.
var readers = map[string]func(out []byte) error{
	capture.Attach: func(out []byte) error {
		a, _, err := parse.Attach(out)
		if err == nil {
			_, err = a.Disk()
		}
		return err
	},
	capture.Info:        func(out []byte) error { _, _, err := parse.Info(out); return err },
	capture.ImageInfo:   func(out []byte) error { _, _, err := parse.ImageInfo(out); return err },
	capture.IsEncrypted: func(out []byte) error { _, err := parse.IsEncrypted(out); return err },
	capture.Limits:      func(out []byte) error { _, err := parse.ResizeLimits(out); return err },
	capture.LimitsDU:    func(out []byte) error { _, err := parse.ResizeImageLimits(out); return err },
	capture.Compact:     func(out []byte) error { _, err := parse.Compact(out); return err },
}

// known are the classes that failures of these answers have to be given.
var known = map[string][]Class{
	"detach-busy": {Busy}, "attach-wrong": {Auth}, "missing/attach": {NotFound}, "junk/attach": {NotImage},
	"exists/create": {Exists}, "resize-attached": {Locked}, "option/attach": {Invalid},
}

// Every capture that is kept is read by the parsers of today: those of real Macs,
// as people send them (dmgbench doctor --capture), and one of the work-alike.
func TestCaptures(t *testing.T) {
	all, err := capture.All(filepath.Join("testdata", "captures"))
	require.NoError(t, err)
	require.NotEmpty(t, all, "the capture of the work-alike is missing")
	for _, c := range all {
		t.Run(c.Vendor+" "+c.System, func(t *testing.T) {
			read := 0
			for _, a := range c.Answers {
				out, said, err := c.Output(a)
				require.NoError(t, err, a.Name)
				if a.Status == 0 {
					if r := readers[a.Reads]; r != nil {
						assert.NoError(t, r(out), "%s: %s", a.Name, out)
						read++
					}
					continue
				}
				for end, classes := range known {
					if strings.HasSuffix(a.Name, end) && a.Error == "" {
						e := failure("asking", a.Name, argv.Command{Tool: argv.Tool(a.Tool), Verb: a.Verb},
							proc.Result{Stdout: out, Stderr: said, Status: a.Status}, nil)
						assert.Contains(t, classes, e.Class, "%s: status %d, %s", a.Name, a.Status, said)
						read++
					}
				}
			}
			assert.Greater(t, read, 30, "hardly anything was read")
		})
	}
}
