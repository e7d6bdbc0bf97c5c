package imagetool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGolden holds every printed form against the page that was looked at. Set
// DMGBENCH_UPDATE to write them anew, and look at what changed.
func TestGolden(t *testing.T) {
	m := newMachine(t)
	m.do("create -size 8m -volname Bench -fs ExFAT a")
	m.do("create -size 10m -volname Bench -fs ExFAT -imagekey sparse-band-size=2048 b.sparsebundle")
	m.do("create -size 1m -layout NONE blank")
	m.uid = 0 // whose name is the same everywhere
	for _, step := range []struct{ name, line string }{
		{"create-plist", "create -size 8m -plist c"},
		{"create-attach-plist", "create -size 8m -plist -attach d"},
		{"imageinfo-udrw", "imageinfo a.dmg"},
		{"imageinfo-udrw-plist", "imageinfo -plist a.dmg"},
		{"imageinfo-udsb-plist", "imageinfo -plist b.sparsebundle"},
		{"imageinfo-blank", "imageinfo blank.dmg"},
		{"diskutil-info-plist", "diskutil image info --extra --plist b.sparsebundle"},
		{"pmap", "pmap a.dmg"},
		{"pmap-complete", "pmap -complete a.dmg"},
		{"pmap-blank", "pmap -simple blank.dmg"},
		{"attach", "attach a.dmg"},
		{"attach-plist", "attach -plist a.dmg"},
		{"attach-diskutil-plist", "diskutil image attach --plist a.dmg"},
		{"info", "info"},
		{"info-plist", "info -plist"},
		{"resize-limits", "resize -limits b.sparsebundle"},
		{"resize-limits-plist", "diskutil image resize --plist b.sparsebundle"},
		{"compact", "compact b.sparsebundle"},
		{"help", "help"},
	} {
		out := m.do(step.line)
		file := filepath.Join("testdata", "golden", step.name+".txt")
		if os.Getenv("DMGBENCH_UPDATE") != "" {
			require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, string(want), out, step.name)
		assert.True(t, strings.HasSuffix(out, "\n"), step.name)
	}
}
