package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// Messages as macOS 26 writes them, with those of other containers between.
func TestTrims(t *testing.T) {
	line := func(message string) string {
		text, err := json.Marshal(map[string]string{"eventMessage": message, "messageType": "Default"})
		require.NoError(t, err)
		return string(text) + "\n"
	}
	out := "Filtering the log data using \"…\"\n" +
		line("handle_apfs_set_backingstore:6172: disk5s1 Set backing store as sparse") +
		line("spaceman_scan_free_blocks:4106: disk51 scan took 9 s, trims took 9 s") +
		line("spaceman_scan_free_blocks:4106: disk5 scan took 0.000722 s, trims took 0.000643 s") +
		line("_punch_hole_cb:37665: disk3s5 Accumulated 4294967296 sparse bytes") +
		line("spaceman_scan_free_blocks:4119: disk5 2382929 blocks trimmed\x1b in 7 extents (91 us/trim, 10886 trims/s)") +
		"{\"count\":5,\"finished\":1}\n"
	list, err := command.ParseTrims([]byte(out), "/dev/disk5s1")
	require.NoError(t, err)
	assert.Equal(t, []string{
		"handle_apfs_set_backingstore:6172: disk5s1 Set backing store as sparse",
		"spaceman_scan_free_blocks:4106: disk5 scan took 0.000722 s, trims took 0.000643 s",
		"spaceman_scan_free_blocks:4119: disk5 2382929 blocks trimmed  in 7 extents (91 us/trim, 10886 trims/s)",
	}, list)
	list, err = command.ParseTrims([]byte(out), "/dev/disk6s1")
	require.NoError(t, err)
	assert.Empty(t, list)
	list, err = command.ParseTrims([]byte(strings.Repeat(line("disk5 x"), 100)), "/dev/disk5s1s1")
	require.NoError(t, err)
	assert.Len(t, list, 32)
	for _, text := range []string{"", "log: Could not open local log store: Operation not permitted\n", "{"} {
		_, err := command.ParseTrims([]byte(text), "/dev/disk5s1")
		require.ErrorIs(t, err, command.ErrNoResult, text)
	}
	_, err = command.ParseTrims([]byte(out), "/dev/loop0p1")
	require.ErrorIs(t, err, command.ErrNoResult)
}
