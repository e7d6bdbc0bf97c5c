package control

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
)

func TestSelector(t *testing.T) {
	mac := Machine{Status: statusOf("mini"), Heard: someDay}
	mac.Tags = []string{"lab", "beta"}
	linux := Machine{Heard: someDay, Status: fleet.Status{Machine: "rack", Host: result.Host{OS: "linux", OSVersion: "Debian GNU/Linux 13 (trixie)", Arch: "amd64", Virtual: "kvm"}}}
	for _, c := range []struct {
		text       string
		mac, linux string // why it is not selected
	}{
		{"", "", ""},
		{"mini", "", "name is rack, want mini"},
		{"mini, rack", "", ""},
		{"nobody, rack", "name is mini, want nobody|rack", ""},
		{"m*,tag=lab", "", "name is rack, want m*"},
		{"name!=mini", "name is mini, want != mini", ""},
		{"tag=lab,tag=beta", "", "has no tag “lab”"},
		{"tag!=beta", "has tag “beta”", ""},
		{"os=macos", "", "os is linux, Debian GNU/Linux 13 (trixie), want macos"},
		{"os>=26", "", "os is linux, Debian GNU/Linux 13 (trixie), want >= 26"},
		{"os=26", "", "os is linux, Debian GNU/Linux 13 (trixie), want 26"},
		{"os_version>26", "os_version is 26.4, want > 26", "os_version is Debian GNU/Linux 13 (trixie), want > 26"},
		{"os>=26.10", "os is macos, 26.4, want >= 26.10", "os is linux, Debian GNU/Linux 13 (trixie), want >= 26.10"},
		{"os_version<26.5", "", ""},
		{"os_version<=26.3.9", "os_version is 26.4, want <= 26.3.9", ""},
		{"os_version>=26.4.0", "", "os_version is Debian GNU/Linux 13 (trixie), want >= 26.4.0"},
		{"arch = ARM64", "", "arch is amd64, want ARM64"},
		{"memory>=16", "", "memory is not known, want >= 16"},
		{"memory<16", "memory is 16, want < 16", "memory is not known, want < 16"},
		{"memory!=8", "", ""},
		{"model=Mac16?1", "", "model is not known, want Mac16?1"},
		{"cpu=*M4*", "", "cpu is not known, want *M4*"},
		{"virtual=no", "", "virtual is yes, want no"},
	} {
		s, err := ParseSelector(c.text)
		require.NoError(t, err, c.text)
		assert.Equal(t, c.mac, s.reject(mac), c.text)
		assert.Equal(t, c.linux, s.reject(linux), c.text)
	}
}

func TestParseSelectorRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"archh=arm64": "unknown key \"archh\" (try arch, ", "shoe=42": "unknown key \"shoe\" (try arch, cpu, ",
		"arch>=arm64": "want =, !=, or a number", "memory>=16GB": "or a number such as", "os>=tahoe": "or a number such as",
		"os_version<tahoe": "or a number such as", "a,,b": `"" is neither`, "=x": "is neither", "os>=": "is neither",
		"name=[": "is neither", "[": "is neither", `a\`: "is neither",
	} {
		_, err := ParseSelector(text)
		assert.ErrorContains(t, err, want, text)
		assert.ErrorContains(t, err, "reading selector", text)
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, text := range []string{"", "os>=26", "mini,tag!=lab", "memory>=16,virtual=no", "os=9999999999999999999999", "name=[a-"} {
		f.Add(text, "26.4", "mini")
	}
	f.Fuzz(func(t *testing.T, text, version, name string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		s.reject(Machine{Heard: someDay, Status: fleet.Status{Machine: name, Tags: []string{name},
			Host: result.Host{OSVersion: version, CPU: version}}})
	})
}
