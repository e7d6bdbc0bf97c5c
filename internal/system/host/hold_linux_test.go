package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHoldKnowsWhetherTheLockIsHeld(t *testing.T) {
	cmd := exec.Command("cat")
	release, how, err := hold(cmd, 30*time.Second)
	require.NoError(t, err)
	assert.Equal(t, "cat", how)
	assert.Nil(t, cmd.ProcessState, "it runs until it is released")
	release()
	release()
	assert.True(t, cmd.ProcessState.Success())
	for _, argv := range [][]string{{"false"}, {"echo", "something else"}, {filepath.Join(t.TempDir(), "missing")}} {
		_, _, err = hold(exec.Command(argv[0], argv[1:]...), 30*time.Second)
		assert.ErrorIs(t, err, ErrUnsupported, argv[0])
	}
	_, _, err = hold(exec.Command("sleep", "60"), time.Millisecond)
	assert.ErrorIs(t, err, ErrUnsupported, "one that never answers")
}

// systemd-inhibit runs the command after its options, and so does what stands in for it here.
func TestInhibitSleepHoldsTheLockOfLogind(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	_, _, err := InhibitSleep()
	require.ErrorIs(t, err, ErrUnsupported, "not installed")
	require.ErrorContains(t, err, "systemd-inhibit is not installed")

	script := "#!/bin/sh\nfor last; do :; done\nPATH=/bin:/usr/bin exec \"$last\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "systemd-inhibit"), []byte(script), 0o755))
	release, how, err := InhibitSleep()
	require.NoError(t, err)
	assert.Equal(t, "systemd-inhibit", how)
	release()
}
