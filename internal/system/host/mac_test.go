package host

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// macFactOf is a fact as read from what its tool printed.
func macFactOf(name, out string) string {
	for _, f := range macFacts {
		if f.name == name {
			return firstMatch(out, f.patterns)
		}
	}
	return "no fact " + name
}

// readVolume decodes the facts of a volume.
func readVolume(out []byte) (v macVolume, ok bool) {
	err := readPlist(out, &v)
	return v, err == nil
}

func TestMacTools(t *testing.T) {
	assert.Equal(t, "ac", macFactOf("power", "Now drawing from 'AC Power'\n"))
	assert.Equal(t, "battery", macFactOf("power", "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t80%; discharging\n"))
	assert.Empty(t, macFactOf("power", ""))
	assert.Equal(t, "on", macFactOf("low_power", " sleep                1\n lowpowermode         1\n"))
	assert.Equal(t, "on", macFactOf("low_power", " powermode            1\n"))
	assert.Empty(t, macFactOf("low_power", " powermode            2\n lowpowermode         0\n"))
	assert.NotEmpty(t, macFactOf("backup", "Backup session status:\n{\n    ClientID = \"x\";\n    Running = 1;\n}\n"))
	assert.Empty(t, macFactOf("backup", "{\n    Running = 0;\n}\n"))
	assert.InDelta(t, 53.5, macSpotlight(" %CPU COMM\n 40.0 mds_stores\n 12,5 mdworker_shared\n  1.0 mds\n 99.0 mdsync\n nan mds\n"), 1e-9)
}

func TestMacThermal(t *testing.T) {
	for out, want := range map[string]string{
		"": "",
		"Note: No thermal warning level has been recorded\nNote: No performance warning level has been recorded\n": "nominal",
		"CPU Power notify\n\tCPU_Scheduler_Limit \t= 100\n\tCPU_Available_CPUs \t= 8\n\tCPU_Speed_Limit \t= 100\n": "nominal",
		"Note: No thermal warning level has been recorded\n\tCPU_Speed_Limit \t= 62\n":                             "throttled to 62 %",
		"Thermal Warning Level = 2\n": "warning level 2",
	} {
		assert.Equal(t, want, macFactOf("thermal", out), out)
	}
}

func TestLoadAverage(t *testing.T) {
	raw := make([]byte, 24)
	binary.LittleEndian.PutUint32(raw, 5120)
	assert.Zero(t, loadAverage(raw), "a scale of zero")
	binary.LittleEndian.PutUint64(raw[16:], 2048)
	assert.InDelta(t, 2.5, loadAverage(raw), 0)
	assert.Zero(t, loadAverage(raw[:20]))
	assert.Empty(t, loadBusy(2, 2))
	assert.Equal(t, []string{"load average 2.5 on 2 processors"}, loadBusy(2.5, 2))
}

const volume = `<?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict>
<key>BusProtocol</key><string>Apple Fabric</string><key>FileVault</key><true/><key>FilesystemName</key><string>APFS</string>
<key>ParentWholeDisk</key><string>disk3</string><key>SolidState</key><true/>
<key>APFSPhysicalStores</key><array><dict><key>APFSPhysicalStore</key><string>disk0s2</string></dict></array></dict></plist>`

func TestMacVolume(t *testing.T) {
	v, ok := readVolume([]byte(volume))
	require.True(t, ok)
	assert.Equal(t, "disk0", v.whole())
	d := result.Disk{Filesystem: "apfs"}
	v.describe(&d, macVolume{MediaName: "APPLE SSD AP0512Z"})
	assert.Equal(t, result.Disk{Filesystem: "APFS", Device: "APPLE SSD AP0512Z", Bus: "Apple Fabric", Medium: "ssd", Encrypted: "FileVault"}, d)
	assert.Empty(t, macVolume{ParentWhole: "-rf"}.whole(), "what is handed to a command is a disk's name")
	_, ok = readVolume(nil)
	assert.False(t, ok)
}

func FuzzMac(f *testing.F) {
	f.Add([]byte(volume))
	f.Add([]byte("\tCPU_Speed_Limit = 9\n lowpowermode 1\n1e999 mds\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		if v, ok := readVolume(p); ok {
			v.describe(&result.Disk{}, v)
			assert.Regexp(t, `^(disk[0-9]+)?$`, v.whole())
		}
		s := string(p)
		for _, fact := range macFacts {
			fact.set(&result.Host{}, firstMatch(s, fact.patterns))
		}
		assert.GreaterOrEqual(t, macSpotlight(s), 0.0)
		assert.GreaterOrEqual(t, loadAverage(p), 0.0)
	})
}
