package host

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/plan"
	"dmgbench/internal/result"
)

func TestFit(t *testing.T) {
	good := result.Host{OS: "darwin", CPUs: 8, Memory: 16e9, Power: "ac", Thermal: "nominal"}
	all := []plan.KeyValue{{Key: "power", Value: "ac"}, {Key: "low_power", Value: "off"}, {Key: "os", Value: "macos"}, {Key: "cpus", Value: "8"},
		{Key: "memory", Value: "16 GB"}, {Key: "thermal", Value: "nominal"}}
	assert.Empty(t, Fit(good, all))
	bad := result.Host{OS: "linux", CPUs: 8, CPUQuota: 7.5, Memory: 16e9, MemoryLimit: 8e9, LowPower: true, Thermal: "throttled"}
	got := Fit(bad, all)
	require.Len(t, got, len(all))
	assert.Equal(t, `the plan requires power = "ac"; it is not known here`, got[0].Text)
	assert.Equal(t, "the plan requires cpus of at least 8; usable are 7", got[3].Text)
	for _, p := range got {
		assert.NotEmpty(t, p.Hint)
	}
	assert.Len(t, Fit(good, []plan.KeyValue{{Key: "moon", Value: "full"}, {Key: "cpus", Value: "many"}, {Key: "memory", Value: "much"}}), 3)
}

func TestWarnings(t *testing.T) {
	assert.Empty(t, Warnings(result.Host{Power: "ac", Thermal: "nominal", Virtual: "docker"}))
	var kinds []string
	for _, w := range Warnings(result.Host{Power: "battery", LowPower: true, Thermal: "throttled", CPUQuota: 1.5, Busy: []string{"Spotlight"}, Virtual: "kvm"}) {
		kinds = append(kinds, w.Kind)
	}
	assert.Equal(t, []string{"battery", "low-power", "thermal", "cpu-quota", "busy", "virtual"}, kinds)
}

func TestStateDir(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "XDG_STATE_HOME": "relative"}
	find := func() (string, error) { return StateDir(func(name string) string { return env[name] }) }
	dir, err := find()
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(home, stateIn(runtime.GOOS)), dir)
	env["XDG_STATE_HOME"] = "/var/state"
	dir, _ = find()
	assert.Equal(t, "/var/state/dmgbench", dir)
	env["DMGBENCH_STATE"] = "/own"
	dir, _ = find()
	assert.Equal(t, "/own", dir)
	assert.Equal(t, "Library/Application Support/dmgbench", stateIn("darwin"))
	for _, home := range []string{"", "relative", filepath.Join(home, "missing")} {
		env = map[string]string{"HOME": home}
		_, err = find()
		assert.ErrorIs(t, err, ErrNoHome, home)
	}
}

func TestLockIsExclusiveUntilReleased(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	release, err := Lock(dir)
	if errors.Is(err, ErrUnsupported) {
		t.Skip("no locks on this system")
	}
	require.NoError(t, err)
	_, err = Lock(dir)
	require.ErrorIs(t, err, ErrBusy)
	release()
	release()
	again, err := Lock(dir)
	require.NoError(t, err)
	again()
}

func TestThisMachine(t *testing.T) {
	dir := t.TempDir()
	h := Gather(t.Context(), []Place{{Name: "here", Path: dir}, {Name: "gone", Path: filepath.Join(dir, "missing")}}, false)
	assert.Positive(t, h.CPUs)
	assert.NotEmpty(t, h.Cores)
	levels := map[string]bool{}
	for _, c := range h.Cores {
		assert.False(t, levels[c.Level], "cores of level %q are listed twice", c.Level)
		levels[c.Level] = true
	}
	require.Len(t, h.Disks, 2)
	assert.Equal(t, result.Disk{Place: "gone", Medium: "unknown"}, h.Disks[1])
	assert.Empty(t, h.Name+h.User+h.Disks[0].Path)
	if h.OS == "linux" || h.OS == "darwin" {
		assert.Positive(t, h.Memory)
		assert.Positive(t, h.Disks[0].Free)
		assert.LessOrEqual(t, Memory(), h.Memory)
		assert.Len(t, BootID(), 16)
		assert.Equal(t, BootID(), BootID())
		_, err := Suspended()
		assert.NoError(t, err)
	}
	assert.Equal(t, dir, Gather(t.Context(), []Place{{Name: "here", Path: dir}}, true).Disks[0].Path)
	if release, how, err := InhibitSleep(); err != nil {
		assert.ErrorIs(t, err, errors.ErrUnsupported)
	} else {
		assert.NotEmpty(t, how)
		release()
		release()
	}
}
