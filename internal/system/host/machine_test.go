package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// grow makes a tree of files; a content that begins with "-> " is a link.
func grow(t testing.TB, files map[string]string) tree {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			require.NoError(t, os.Symlink(to, full))
			continue
		}
		require.NoError(t, os.WriteFile(full, []byte(content), 0o644))
	}
	return tree(dir)
}

func TestMachineReadsALaptop(t *testing.T) {
	tr := grow(t, map[string]string{
		"etc/os-release":                                    "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n",
		"proc/sys/kernel/osrelease":                         "6.12.0-1-amd64\n",
		"sys/class/dmi/id/sys_vendor":                       "LENOVO\n",
		"sys/class/dmi/id/product_name":                     "21HM\x1b[31m\n",
		"proc/cpuinfo":                                      "processor\t: 0\nmodel name\t: Example CPU  @ 2.0GHz\nflags\t\t: fpu vme\n\nprocessor\t: 1\n",
		"sys/devices/cpu_core/cpus":                         "0-7\n",
		"sys/devices/cpu_atom/cpus":                         "8-15\n",
		"proc/meminfo":                                      "MemTotal:       16000000 kB\nMemFree: 1 kB\n",
		"proc/self/cgroup":                                  "0::/user.slice/run.scope\n",
		"sys/fs/cgroup/user.slice/cpu.max":                  "150000 100000\n",
		"sys/fs/cgroup/user.slice/run.scope/cpu.max":        "max 100000\n",
		"sys/fs/cgroup/user.slice/memory.max":               "4096000000\n",
		"sys/fs/cgroup/user.slice/run.scope/memory.max":     "max\n",
		"sys/class/power_supply/AC/type":                    "Mains\n",
		"sys/class/power_supply/AC/online":                  "0\n",
		"sys/class/power_supply/BAT0/type":                  "Battery\n",
		"sys/class/power_supply/BAT0/status":                "Discharging\n",
		"sys/firmware/acpi/platform_profile":                "low-power\n",
		"sys/class/thermal/thermal_zone0/temp":              "96000\n",
		"sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
		"sys/class/thermal/thermal_zone0/trip_point_0_temp": "95000\n",
		"proc/loadavg":                                      "20.5 3.0 1.0 2/100 4242\n",
	})
	h := result.Host{CPUs: 16}
	tr.machine(&h)
	assert.Equal(t, result.Host{
		OSVersion: "Debian GNU/Linux 13 (trixie)", Kernel: "6.12.0-1-amd64", Model: "LENOVO 21HM [31m", CPU: "Example CPU @ 2.0GHz",
		Cores: []result.Cores{{Level: "performance", Count: 8}, {Level: "efficiency", Count: 8}}, CPUs: 16,
		Memory: 16000000 * 1024, MemoryLimit: 4096000000, CPUQuota: 1.5, Power: "battery", LowPower: true, Thermal: "throttled",
		Busy: []string{"load average 20.5 on 16 processors"},
	}, h)
}

func TestPowerIgnoresTheMouse(t *testing.T) {
	tr := grow(t, map[string]string{
		"sys/class/power_supply/hid/type": "Battery", "sys/class/power_supply/hid/scope": "Device", "sys/class/power_supply/hid/status": "Discharging",
	})
	assert.Empty(t, tr.power())
	require.NoError(t, os.MkdirAll(tr.path("sys/class/power_supply/AC"), 0o755))
	require.NoError(t, os.WriteFile(tr.path("sys/class/power_supply/AC/type"), []byte("Mains"), 0o644))
	require.NoError(t, os.WriteFile(tr.path("sys/class/power_supply/AC/online"), []byte("1"), 0o644))
	assert.Equal(t, "ac", tr.power())
}

func TestControlGroupsOfVersionOne(t *testing.T) {
	tr := grow(t, map[string]string{
		"proc/self/cgroup":                               "4:memory:/job\n1:cpu,cpuacct:/job\n",
		"sys/fs/cgroup/cpu/job/cpu.cfs_quota_us":         "50000\n",
		"sys/fs/cgroup/cpu/job/cpu.cfs_period_us":        "100000\n",
		"sys/fs/cgroup/cpu/cpu.cfs_quota_us":             "-1\n",
		"sys/fs/cgroup/cpu/cpu.cfs_period_us":            "100000\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
		"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1048576\n",
	})
	assert.InDelta(t, 0.5, tr.cpuQuota(), 0)
	_, limit := tr.memory()
	assert.EqualValues(t, 1<<20, limit)
	require.NoError(t, os.Remove(tr.path("sys/fs/cgroup/memory/job/memory.limit_in_bytes")))
	_, limit = tr.memory()
	assert.Zero(t, limit, "the largest number means no limit")
}

// Only passive and hot trip points slow a machine down; a point of zero is unused.
func TestThermalStateByTripPoints(t *testing.T) {
	zone := func(temp, kind, at string) map[string]string {
		const dir = "sys/class/thermal/thermal_zone0/"
		return map[string]string{dir + "temp": temp, dir + "trip_point_0_type": kind, dir + "trip_point_0_temp": at}
	}
	for _, c := range []struct{ temp, kind, at, want string }{
		{"50000", "passive", "90000", "nominal"}, {"90000", "passive", "90000", "throttled"}, {"95000", "hot", "90000", "throttled"},
		{"95000", "critical", "90000", ""}, {"95000", "active", "90000", ""}, {"95000", "passive", "0", ""}, {"unknown", "passive", "90000", ""},
	} {
		assert.Equal(t, c.want, grow(t, zone(c.temp, c.kind, c.at)).thermal(), "%+v", c)
	}
}

func TestCoresByCapacity(t *testing.T) {
	files := map[string]string{}
	for i, c := range []string{"400", "1024", "400", "1024", "400", "700"} {
		files[filepath.Join("sys/devices/system/cpu", "cpu"+string(rune('0'+i)), "cpu_capacity")] = c
	}
	assert.Equal(t, []result.Cores{{Level: "performance", Count: 2}, {Level: "efficiency", Count: 4}}, grow(t, files).cores())
}

func TestCPUList(t *testing.T) {
	for s, n := range map[string]int{"0-3,8,10-11\n": 7, "0": 1, "": 0, "3-1": 0, "0-4294967295": 0, "x": 0, "0-": 0, "-1": 0} {
		assert.Equal(t, n, cpuList(s), s)
	}
}

func TestVirtualKinds(t *testing.T) {
	for name, c := range map[string]struct {
		files   map[string]string
		flags   string
		want    string
		virtual bool
	}{
		"bare":          {nil, "fpu", "", false},
		"flag":          {nil, "fpu hypervisor vme", "virtual machine", true},
		"kvm":           {map[string]string{"sys/class/dmi/id/sys_vendor": "QEMU"}, "hypervisor", "qemu", true},
		"metal":         {map[string]string{"sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "", "", false},
		"instance":      {map[string]string{"sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "hypervisor", "virtual machine", true},
		"xen guest":     {map[string]string{"sys/hypervisor/type": "xen\n"}, "", "xen", true},
		"xen dom0":      {map[string]string{"sys/hypervisor/type": "xen\n", "proc/xen/capabilities": "control_d\n"}, "", "", false},
		"docker":        {map[string]string{".dockerenv": ""}, "", "docker", false},
		"docker on vm":  {map[string]string{".dockerenv": ""}, "hypervisor", "virtual machine, docker", true},
		"kubernetes":    {map[string]string{"proc/1/cgroup": "0::/kubepods/pod1\n"}, "", "kubernetes", false},
		"wsl":           {map[string]string{"proc/sys/kernel/osrelease": "5.15-microsoft-standard-WSL2"}, "", "wsl", true},
		"odd container": {map[string]string{"run/systemd/container": "strange, kind"}, "", "container", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := grow(t, c.files).virtual(c.flags)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.virtual, Virtual(result.Host{Virtual: got}))
		})
	}
}

// FuzzMachine feeds one hostile content to every file that is read.
func FuzzMachine(f *testing.F) {
	f.Add("0::/../../..\n1:cpu:/a/b\n")
	f.Add("MemTotal: 99999999999999999999 kB\nflags: hypervisor\n")
	f.Add("\xff\x00-1 -1\n36 35 98:0 /m / rw - ext4 /dev/../x rw\n")
	names := []string{"etc/os-release", "proc/cpuinfo", "proc/meminfo", "proc/self/cgroup", "proc/self/mountinfo", "proc/loadavg", "sys/fs/cgroup/cpu.max",
		"sys/fs/cgroup/memory.max", "sys/devices/system/cpu/online", "sys/devices/system/cpu/cpu0/cpu_capacity", "sys/class/thermal/z/temp",
		"sys/class/thermal/z/trip_point_0_temp", "sys/class/power_supply/a/type", "sys/hypervisor/type", "sys/class/dmi/id/product_name"}
	files := map[string]string{}
	for _, n := range names {
		files[n] = ""
	}
	tr := grow(f, files)
	f.Fuzz(func(t *testing.T, content string) {
		for _, n := range names {
			require.NoError(t, os.WriteFile(tr.path(n), []byte(content), 0o644))
		}
		h := result.Host{CPUs: 1}
		tr.machine(&h)
		tr.under("/x")
		assert.GreaterOrEqual(t, h.Memory, int64(0))
		assert.GreaterOrEqual(t, h.MemoryLimit, int64(0))
		assert.GreaterOrEqual(t, h.CPUQuota, 0.0)
		for _, s := range []string{h.OSVersion, h.Model, h.CPU, h.Virtual} {
			assert.NotContains(t, s, "\x1b")
			assert.LessOrEqual(t, len([]rune(s)), 2*textLimit)
		}
	})
}
