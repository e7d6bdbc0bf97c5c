package command_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// registry is what ioreg prints of one attached image, whose devices are nested each in the one before it.
func registry(url string, devices ...string) string {
	children := ""
	for i := len(devices) - 1; i >= 0; i-- {
		children = "<key>IORegistryEntryChildren</key><array><dict><key>IOObjectClass</key><string>IOMedia</string>" +
			"<key>BSD Name</key><string>" + devices[i] + "</string>" + children + "</dict></array>"
	}
	return `<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><array><dict><key>IOObjectClass</key>` +
		`<string>AppleDiskImageDevice</string><key>DiskImageURL</key><string>` + url + `</string>` + children + `</dict></array></plist>`
}

func TestParseRegistry(t *testing.T) {
	list, err := command.ParseRegistry([]byte(registry("file:///private/tmp/a%20b%25%C3%A9.dmg", "disk9", "disk9s1", "disk4", "disk4s1")))
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "/private/tmp/a b%é.dmg", list[0].Image)
	disk, err := list[0].Disk()
	require.NoError(t, err)
	assert.Equal(t, "/dev/disk9", disk, "the image's, though that of its container has a lower number")
	assert.Len(t, list[0].Entities, 4)

	list, err = command.ParseRegistry([]byte(registry("file:///p/x.sparsebundle/", "disk4")))
	require.NoError(t, err)
	assert.Equal(t, "/p/x.sparsebundle", list[0].Image, "the address of a folder ends with a slash")

	for name, text := range map[string]string{
		"no image":         "",
		"of memory":        registry("ram://2048", "disk4"),
		"no address":       registry("", "disk4"),
		"bad address":      registry("file:///%zz", "disk4"),
		"no disk yet":      registry("file:///p/x.dmg"),
		"an odd disk":      registry("file:///p/x.dmg", "-force"),
		"another property": strings.ReplaceAll(registry("file:///p/x.dmg", "disk4"), "DiskImageURL", "Other"),
	} {
		list, err := command.ParseRegistry([]byte(text))
		require.NoError(t, err, name)
		assert.Empty(t, list, name)
	}
	for _, text := range []string{"ioreg: error", registry("file:///p/x.dmg", "disk4")[:200]} {
		_, err := command.ParseRegistry([]byte(text))
		require.ErrorIs(t, err, command.ErrNoResult, "neither presence nor absence")
	}
}
