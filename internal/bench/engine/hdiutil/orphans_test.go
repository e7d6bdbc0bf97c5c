package hdiutil

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/linuxhdiutil/attach"
)

func TestWorking(t *testing.T) {
	for line, want := range map[string]bool{
		"/usr/bin/dmgbench\x00hdiutil\x00attach\x00/place/dmgbench-1/x.dmg\x00":                true,
		"/usr/bin/hdiutil attach -plist -mountpoint /place/dmgbench-1/mnt1 /elsewhere/x.dmg":   true,
		"/usr/sbin/diskutil image attach /place/dmgbench-1/x.asif":                             true,
		"/usr/bin/hdiutil attach /place/dmgbench-12/x.dmg":                                     false,
		"/usr/bin/dmgbench\x00" + attach.HelperVerb + "\x00hdiutil\x00/place/dmgbench-1/x.dmg": false,
		"/usr/bin/vi /place/dmgbench-1/x":                                                      false, "": false,
	} {
		assert.Equal(t, want, hasToolAtWork([]string{"init", line}, "/place/dmgbench-1"), line)
	}
}

// A tool that attaches behind the back of a run that was killed is waited for, so that its image is found.
func TestReleaseWaitsForTools(t *testing.T) {
	r := newRig(t, rules(FakeRule{Verb: "none"}))
	r.create("x", spec("UDRW"))
	looks := 0
	r.e.host.CommandLines = func(context.Context) []string {
		if looks++; looks < 4 {
			return []string{"/usr/bin/hdiutil attach " + r.file("x.dmg")}
		}
		if looks == 4 { // the tool ends with the image attached
			r.tool.Occupy(r.file("x.dmg"), "")
		}
		return nil
	}
	names, err := r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err)
	assert.Equal(t, []string{"x.dmg"}, names)
	assert.Equal(t, 3*orphanPoll+lateTime, r.clock.Now(), "and the system may still attach another")
	r.clean()
	r.e.host.CommandLines = func(context.Context) []string { return []string{"hdiutil " + r.file("x.dmg")} }
	_, err = r.e.Release(t.Context(), r.dir.Path())
	require.NoError(t, err, "one that hangs is not waited for without end")
	assert.Less(t, r.clock.Now(), orphanTime+2*lateTime+time.Second)
}

func TestCommandLines(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read x", "hdiutil", t.TempDir()+"/x.dmg")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	assert.True(t, hasToolAtWork(commandLines(t.Context()), cmd.Args[4][:len(cmd.Args[4])-len("/x.dmg")]))
	require.NoError(t, in.Close())
	_ = cmd.Wait() // the end of its input is a failure to read
	assert.False(t, hasToolAtWork(commandLines(t.Context()), cmd.Args[4][:len(cmd.Args[4])-len("/x.dmg")]))
}

// Our own process is none that could be in the way: it may have the name of the tool and the folder in its command line.
func TestOwnProcessIsNotListed(t *testing.T) {
	for _, line := range commandLines(t.Context()) {
		assert.NotContains(t, line, strings.Join(os.Args, "\x00"))
		assert.NotContains(t, line, strings.Join(os.Args, " "))
	}
}
