package host

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"howett.net/plist"

	"dmgbench/internal/result"
)

// What the tools of macOS print, read on any system so that it can be tested on
// any.

// macBoot distinguishes a boot from others: by the session's identifier, since
// the boot time moves when the clock is set, and by the boot time in seconds
// where the system has no identifier; "" if it has neither.
func macBoot(session string, bootTime func() (seconds int64, err error)) string {
	if session != "" {
		return session
	}
	if s, err := bootTime(); err == nil && s > 0 {
		return strconv.FormatInt(s, 10)
	}
	return ""
}

// macPower reads `pmset -g batt`, with the first line "Now drawing from 'AC
// Power'".
func macPower(out string) string {
	switch {
	case strings.Contains(out, "'AC Power'"):
		return "ac"
	case strings.Contains(out, "'Battery Power'"), strings.Contains(out, "'UPS Power'"):
		return "battery"
	}
	return ""
}

// macLowPower reads `pmset -g`: "lowpowermode 1", or since macOS 12 on some
// models "powermode 1", where 2 is high power.
func macLowPower(out string) bool {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 2 && (f[0] == "lowpowermode" || f[0] == "powermode") && f[1] == "1" {
			return true
		}
	}
	return false
}

// macThermal reads `pmset -g therm`: limits below 100 % are throttling (Intel);
// a warning level that was recorded is pressure; none is nominal.
func macThermal(out string) string {
	state := ""
	for line := range strings.Lines(out) {
		k, v, ok := strings.Cut(line, "=")
		if !ok {
			if strings.Contains(line, "No thermal warning level has been recorded") && state == "" {
				state = "nominal"
			}
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(v))
		switch k = strings.TrimSpace(k); {
		case err != nil:
		case (k == "CPU_Speed_Limit" || k == "CPU_Scheduler_Limit") && n > 0 && n < 100:
			return fmt.Sprintf("throttled to %d %%", n)
		case k == "CPU_Speed_Limit":
			state = "nominal"
		case strings.Contains(strings.ToLower(k), "thermal") && n > 0:
			return fmt.Sprintf("warning level %d", n)
		}
	}
	return state
}

// macBackup reads `tmutil status`.
func macBackup(out string) bool {
	for line := range strings.Lines(out) {
		if k, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == "Running" {
			return strings.TrimSpace(strings.Trim(strings.TrimSpace(v), ";")) == "1"
		}
	}
	return false
}

// macSpotlight adds up what the indexers take in `ps -Aceo pcpu,comm`, in
// percent of one processor.
func macSpotlight(out string) float64 {
	var sum float64
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 2 || f[1] != "mds" && f[1] != "mds_stores" && !strings.HasPrefix(f[1], "mdworker") {
			continue
		}
		if v, err := strconv.ParseFloat(strings.Replace(f[0], ",", ".", 1), 64); err == nil && v > 0 && v < 1e6 {
			sum += v
		}
	}
	return sum
}

// loadAverage reads vm.loadavg (struct loadavg: three fixed-point uint32,
// padding, an int64 scale); 0 if it is none.
func loadAverage(raw []byte) float64 {
	if len(raw) < 24 {
		return 0
	}
	scale := int64(binary.LittleEndian.Uint64(raw[16:]))
	if scale <= 0 {
		return 0
	}
	return float64(binary.LittleEndian.Uint32(raw)) / float64(scale)
}

// macVolume is what is used of `diskutil info -plist`.
type macVolume struct {
	MediaName      string `plist:"MediaName"`
	BusProtocol    string `plist:"BusProtocol"`
	Virtual        string `plist:"VirtualOrPhysical"`
	SolidState     *bool  `plist:"SolidState"`
	Internal       *bool  `plist:"Internal"`
	FileVault      bool   `plist:"FileVault"`
	Encryption     bool   `plist:"Encryption"`
	FilesystemName string `plist:"FilesystemName"`
	ParentWhole    string `plist:"ParentWholeDisk"`
	Stores         []struct {
		Name string `plist:"APFSPhysicalStore"`
	} `plist:"APFSPhysicalStores"`
}

func readVolume(out []byte) (v macVolume, ok bool) {
	// The decoder panics on some malformed input instead of returning an error.
	defer func() {
		if recover() != nil {
			v, ok = macVolume{}, false
		}
	}()
	// An empty or plain text would pass as a property list of the old format.
	format, err := plist.Unmarshal(out, &v)
	return v, err == nil && format == plist.XMLFormat
}

var wholeDisk = regexp.MustCompile(`^disk[0-9]{1,5}`)

// whole is the disk to ask about for the model of a volume; "" if there is
// none.
func (v macVolume) whole() string {
	if len(v.Stores) > 0 {
		return wholeDisk.FindString(v.Stores[0].Name)
	}
	return wholeDisk.FindString(v.ParentWhole)
}

// describe fills in a disk from its volume and from the whole disk below it.
func (v macVolume) describe(d *result.Disk, below macVolume) {
	if v.FilesystemName != "" {
		d.Filesystem = clean(v.FilesystemName)
	}
	d.Device, d.Bus = clean(below.MediaName), clean(v.BusProtocol)
	switch {
	case v.FileVault:
		d.Encrypted = "FileVault"
	case v.Encryption:
		d.Encrypted = "yes"
	}
	switch {
	case v.Internal == nil:
	case *v.Internal:
		d.Location = "internal"
	default:
		d.Location = "external"
	}
	switch solid := v.SolidState; {
	case v.BusProtocol == "Disk Image":
		d.Medium = "unknown"
	case solid != nil && *solid:
		d.Medium = "ssd"
	case solid != nil:
		d.Medium = "hdd"
	}
}

// macPressure reads `notifyutil -g com.apple.system.thermalpressurelevel`,
// which reports on Apple silicon what pmset does not: "<name> <level>". "" if
// it is not a level.
func macPressure(out string) string {
	f := strings.Fields(out)
	if len(f) != 2 || f[0] != "com.apple.system.thermalpressurelevel" {
		return ""
	}
	// Levels of <libkern/OSThermalNotification.h>.
	levels := []string{"nominal", "moderate", "heavy", "trapping", "sleeping"}
	n, err := strconv.Atoi(f[1])
	if err != nil || n < 0 || n >= len(levels) {
		return ""
	}
	return levels[n]
}

// hotter combines two sources: the one that reports pressure wins.
func hotter(pmset, pressure string) string {
	if pressure == "" || pressure == "nominal" && pmset != "" {
		return pmset
	}
	return pressure
}

// macMemory names the level of kern.memorystatus_vm_pressure_level.
func macMemory(level int) string {
	return map[int]string{1: "normal", 2: "warning", 4: "critical"}[level]
}

// macSwap reads vm.swapusage (struct xsw_usage: total, available and used
// bytes, each a uint64) and gives the bytes in use; 0 if it is none.
func macSwap(raw []byte) int64 {
	if len(raw) < 24 {
		return 0
	}
	used := int64(binary.LittleEndian.Uint64(raw[16:]))
	return max(0, used)
}

// macVersion is the version of macOS. The kernel gives programs that were
// linked for older systems a number that no system ever had, 10.16 or 16.x;
// sw_vers(1) prints the true one.
func macVersion(product string, swVers func() string) string {
	if product == "10.16" || strings.HasPrefix(product, "16.") {
		if v := clean(swVers()); v != "" {
			return v
		}
	}
	return product
}

// macDisk fills in what the system's tools report of the volume on the device
// ("disk3s5") that is mounted on point. mdutil(1) and tmutil(8) are asked by
// the mount point: they take volumes, not the folders in them.
func macDisk(d *result.Disk, device, point string, ask func(tool string, args ...string) []byte) {
	if v, ok := readVolume(ask("/usr/sbin/diskutil", "info", "-plist", device)); ok {
		below := v
		if whole := v.whole(); whole != "" {
			below, _ = readVolume(ask("/usr/sbin/diskutil", "info", "-plist", whole))
		}
		v.describe(d, below)
	}
	d.Indexed = macIndexing(string(ask("/usr/bin/mdutil", "-s", point)))
	d.Snapshots = macSnapshots(string(ask("/usr/bin/tmutil", "listlocalsnapshots", point)))
}

// macIndexing reads `mdutil -s PATH`: a line with the path, then the state.
func macIndexing(out string) string {
	switch {
	case strings.Contains(out, "Indexing enabled"):
		return "on"
	case strings.Contains(out, "Indexing disabled"), strings.Contains(out, "Indexing and searching disabled"):
		return "off"
	}
	return ""
}

// macSnapshots counts the local snapshots in `tmutil listlocalsnapshots PATH`:
// a heading, then a name in each line.
func macSnapshots(out string) int {
	n := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "com.apple.") {
			n++
		}
	}
	return n
}

// macFileVault reads `fdesetup status`: "FileVault is On." or "Off.".
func macFileVault(out string) string {
	switch {
	case strings.Contains(out, "FileVault is On"):
		return "on"
	case strings.Contains(out, "FileVault is Off"):
		return "off"
	}
	return ""
}

// coreLevel names a level of processors as the system does ("Performance"), in
// lower case.
func coreLevel(name string, i int) string {
	if name != "" {
		return strings.ToLower(name)
	}
	if i == 0 {
		return "performance"
	}
	return "efficiency"
}
