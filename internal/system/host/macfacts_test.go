package host

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

func TestMacFacts(t *testing.T) {
	for out, want := range map[string]string{
		"com.apple.system.thermalpressurelevel 0\n": "nominal", "com.apple.system.thermalpressurelevel 2": "heavy",
		"com.apple.system.thermalpressurelevel 9": "", "com.apple.system.thermalpressurelevel -1": "", "other 1": "", "": "",
	} {
		assert.Equal(t, want, macFactOf("pressure", out), out)
	}
	i := slices.IndexFunc(macFacts, func(f macFact) bool { return f.name == "pressure" })
	for _, c := range []struct{ pmset, pressure, want string }{
		{"", "nominal", "nominal"}, {"throttled to 62 %", "nominal", "throttled to 62 %"},
		{"nominal", "moderate", "moderate"}, {"nominal", "", "nominal"},
	} {
		h := result.Host{Thermal: c.pmset}
		macFacts[i].set(&h, c.pressure)
		assert.Equal(t, c.want, h.Thermal, c)
	}
	assert.Equal(t, []string{"normal", "warning", "critical", ""}, []string{macMemory[1], macMemory[2], macMemory[4], macMemory[0]})
	assert.Equal(t, "on", firstMatch("/Users/x:\n\tIndexing enabled. \n", indexing))
	assert.Equal(t, "off", firstMatch("/Volumes/X:\n\tIndexing disabled.\n", indexing))
	assert.Empty(t, firstMatch("/x:\n\tError: unknown indexing state.\n", indexing))
	assert.Equal(t, "on", macFactOf("filevault", "FileVault is On.\n"))
	assert.Equal(t, "off", macFactOf("filevault", "FileVault is Off.\nDeferred enablement appears to be active.\n"))
	assert.Empty(t, macFactOf("filevault", "Error: not supported\n"))
	assert.Equal(t, "2811.101.1", macFactOf("apfs_version", "2811.101.1\n"))
	assert.Empty(t, macFactOf("disk_images_version", "The domain/default pair of (…, CFBundleVersion) does not exist\n"))
	assert.Equal(t, "514.80.3", macFactOf("disk_images2_version", "514.80.3\n"))
	raw := make([]byte, 32)
	binary.LittleEndian.PutUint64(raw[16:], 1<<30)
	assert.EqualValues(t, 1<<30, macSwap(raw))
	assert.Zero(t, macSwap(raw[:23]))
}

func TestMacVolumeTellsWhereItIs(t *testing.T) {
	v, ok := readVolume([]byte(`<?xml version="1.0"?><plist version="1.0"><dict><key>Internal</key><false/><key>BusProtocol</key><string>USB</string></dict></plist>`))
	require.True(t, ok)
	var d result.Disk
	v.describe(&d, v)
	assert.Equal(t, "external", d.Location)
	assert.Equal(t, "USB", d.Bus)
}

func TestLinuxMemory(t *testing.T) {
	tr := grow(t, map[string]string{
		"proc/meminfo":         "MemTotal: 100 kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n",
		"proc/pressure/memory": "some avg10=5.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=1.20 avg60=0.00 avg300=0.00 total=1\n",
	})
	var h result.Host
	tr.machine(&h)
	assert.EqualValues(t, 1<<20, h.SwapUsed)
	assert.Equal(t, "warning", h.MemoryPressure)
	tr = grow(t, map[string]string{"proc/pressure/memory": "full avg10=0.10 avg60=9.00\n"})
	tr.machine(&h)
	assert.Equal(t, "normal", h.MemoryPressure)
	assert.Zero(t, h.SwapUsed)
	assert.Empty(t, grow(t, nil).pressure())
}

func TestFitOfTheMoreRarelyAsked(t *testing.T) {
	ask := []plan.KeyValue{{Key: "memory_pressure", Value: "normal"}, {Key: "virtual", Value: "no"}, {Key: "translated", Value: "no"},
		{Key: "busy", Value: "no"}, {Key: "medium", Value: "ssd"}, {Key: "location", Value: "internal"}}
	good := result.Host{MemoryPressure: "normal", Virtual: "docker", Disks: []result.Disk{{Medium: "ssd", Location: "internal"}}}
	assert.Empty(t, Fit(good, ask))
	bad := result.Host{MemoryPressure: "critical", Virtual: "kvm", Translated: true, Busy: []string{"Spotlight"},
		Disks: []result.Disk{{Medium: "ssd"}, {Place: "x", Medium: "hdd", Location: "external"}}}
	got := Fit(bad, ask)
	require.Len(t, got, len(ask)+1, "each disk that does not fit")
	assert.Equal(t, `the plan requires medium = "ssd"; it is hdd at place "x"`, got[4].Text)
	assert.Equal(t, `the plan requires location = "internal"; it is not known here`, got[5].Text)
	assert.Len(t, Fit(result.Host{}, ask[4:]), 2, "no disk is no SSD")
}

func TestDiskWarnings(t *testing.T) {
	kinds := func(list []result.Warning) (out []string) {
		for _, w := range list {
			out = append(out, w.Kind)
		}
		return out
	}
	h := result.Host{Translated: true, MemoryPressure: "warning", Disks: []result.Disk{
		{Medium: "network", Filesystem: "smbfs"}, {Place: "x", Bus: "Disk Image", Total: 100, Free: 9}, {Bus: "nvme", Total: 100, Free: 10, Compressed: true}}}
	assert.Equal(t, []string{"translated", "memory-pressure", "network", "image-host", "nearly-full", "compressed"}, kinds(Warnings(h)))
	list := Warnings(h)
	assert.Equal(t, "the disk measured on is another machine's, reached by smbfs", list[2].Text)
	assert.Equal(t, `the disk at place "x" had 9 % free space`, list[4].Text)
}

func TestChanges(t *testing.T) {
	before := result.Host{Power: "ac", Thermal: "nominal", Disks: []result.Disk{{Snapshots: 1}}, Busy: []string{"Time Machine"}}
	assert.Empty(t, Changes(before, before))
	after := result.Host{Power: "battery", Thermal: "heavy", SwapUsed: 65 << 20, Busy: []string{"Time Machine", "Spotlight"}, Disks: []result.Disk{{Snapshots: 2}}}
	got := Changes(before, after)
	require.Len(t, got, 5)
	assert.Equal(t, "at the end of the session, not at its beginning: the machine ran on battery", got[0].Text)
	assert.Contains(t, got[4].Text, "1 before and 2 after")
	assert.Empty(t, Changes(after, after), "what was so at the beginning has been said then")
	assert.Empty(t, Changes(after, before), "what got better")
}

// The tools are asked of the volume and of the disk below it. They take mount points: of a folder in a volume,
// mdutil says "unknown indexing state" on some systems, and tmutil's page knows volumes only.
func TestMacDisk(t *testing.T) {
	answers := map[string]string{
		"/usr/sbin/diskutil info -plist disk3s5": volume,
		"/usr/sbin/diskutil info -plist disk0": `<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>` +
			`<key>MediaName</key><string>APPLE SSD AP1024Z</string></dict></plist>`,
		"/usr/bin/mdutil -s /System/Volumes/Data":                 "/System/Volumes/Data:\n\tIndexing enabled. \n",
		"/usr/bin/tmutil listlocalsnapshots /System/Volumes/Data": "Snapshots for disk /System/Volumes/Data:\ncom.apple.TimeMachine.2026-03-23-101010.local\ncom.apple.os.update-ABC\n",
	}
	d := result.Disk{Filesystem: "apfs"}
	macDisk(t.Context(), &d, "disk3s5", "/System/Volumes/Data", func(_ context.Context, tool string, args ...string) []byte {
		line := strings.Join(append([]string{tool}, args...), " ")
		out, ok := answers[line]
		assert.True(t, ok, line)
		delete(answers, line)
		return []byte(out)
	})
	assert.Empty(t, answers, "each was asked once")
	assert.Equal(t, result.Disk{Filesystem: "APFS", Device: "APPLE SSD AP1024Z", Bus: "Apple Fabric", Medium: "ssd", Encrypted: "FileVault",
		Indexed: "on", Snapshots: 2}, d)
	nothing := result.Disk{Filesystem: "exfat"}
	macDisk(t.Context(), &nothing, "disk4s1", "/Volumes/X", func(context.Context, string, ...string) []byte { return nil })
	assert.Equal(t, result.Disk{Filesystem: "exfat"}, nothing)
}

// Each fact reaches its field of the host, and only where its tool reports it.
func TestMacFactsReachTheHost(t *testing.T) {
	for name, want := range map[string]result.Host{
		"power": {Power: "on"}, "low_power": {LowPower: true}, "thermal": {Thermal: "on"}, "pressure": {Thermal: "on"},
		"filevault": {FileVault: "on"}, "backup": {Busy: []string{"on"}},
	} {
		i := slices.IndexFunc(macFacts, func(f macFact) bool { return f.name == name })
		require.GreaterOrEqual(t, i, 0, name)
		var set, unset result.Host
		macFacts[i].set(&set, "on")
		macFacts[i].set(&unset, "")
		assert.Equal(t, want, set, name)
		assert.Equal(t, result.Host{}, unset, name)
	}
}
