//go:build !linux

package hdiutil

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The list of ps(1) is parsed without our own process, which may have the name of the tool in its command line.
func TestParseProcesses(t *testing.T) {
	list := "    1 /sbin/launchd\n  412 /tmp/dmgbench-hdiutil run --at /v/x/\n 4120 hdiutil attach /v/x/a b.dmg  \n  413 \n"
	assert.Equal(t, []string{"/sbin/launchd", "hdiutil attach /v/x/a b.dmg"}, parseProcesses(list, 412))
	assert.False(t, hasToolAtWork(parseProcesses(list, 412), "/v/x/a b.dmg"))
	assert.Empty(t, parseProcesses("", 1))
}
