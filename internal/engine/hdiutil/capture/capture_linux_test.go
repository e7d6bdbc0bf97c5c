package capture_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/engine/hdiutil/capture"
	"dmgbench/internal/imagetool"
)

// TestMain makes the test's program the work-alike, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "hdiutil":
			os.Exit(imagetool.Main(context.Background(), os.Args[2:], imagetool.System()))
		case imagetool.HelperVerb:
			os.Exit(imagetool.Main(context.Background(), os.Args[1:], imagetool.System()))
		}
	}
	os.Exit(m.Run())
}

const secret = "a secret that nobody may see"

// The work-alike answers everything, and what is kept tells nothing of this machine.
func TestCaptureOfTheWorkAlike(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it attaches images")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	if keep := os.Getenv("DMGBENCH_CAPTURE"); keep != "" {
		dir = keep
	}
	c, err := capture.Run(t.Context(), dir, capture.Options{
		Hdiutil: []string{self, "hdiutil"}, Diskutil: []string{self, "hdiutil", "diskutil"}, Vendor: "dmgbench", System: "Linux",
		Passphrase: []byte(secret), Private: map[string]string{"CAPTURE-PRIVATE": "$P"}, Now: time.Now(),
	})
	require.NoError(t, err)
	status := map[string]int{}
	for _, a := range c.Answers {
		require.NotContains(t, status, a.Name, "a name twice")
		status[a.Name] = a.Status
		out, said, err := c.Output(a)
		require.NoError(t, err)
		assert.Empty(t, a.Error, a.Name)
		for _, text := range []string{string(out), string(said), strings.Join(a.Args, " "), a.Input} {
			assert.NotContains(t, text, secret)
			assert.NotContains(t, text, filepath.Dir(self))
			assert.NotContains(t, text, os.TempDir()+"/dmgbench-capture")
		}
	}
	for _, name := range []string{"info/before", "udrw/create", "udsb/attach", "udsb/detach", "udsb/compact", "to-udsb/attach", "info/after"} {
		assert.Zero(t, status[name], name)
	}
	for _, name := range []string{"missing/attach", "junk/attach", "exists/create", "option/attach", "udsb/compact-attached"} {
		assert.NotZero(t, status[name], name)
	}
	_, err = capture.Run(t.Context(), dir, capture.Options{})
	require.ErrorContains(t, err, "not empty")
	again, err := capture.Load(dir)
	require.NoError(t, err)
	assert.Len(t, again.Answers, len(c.Answers))
}
