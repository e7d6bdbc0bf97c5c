package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"dmgbench/internal/engine/hdiutil"
	"dmgbench/internal/host"
	"dmgbench/internal/hostio"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"
	"dmgbench/scripts"
)

// runDoctor is the command "doctor". It prints all facts even where no engine
// works, which is its error.
func (a *app) runDoctor(ctx context.Context, _ []string) error {
	if dir := a.text("capture"); dir != "" {
		return a.captureAnswers(ctx, dir)
	}
	given, err := a.locations()
	if err != nil {
		return err
	}
	if len(given.here) > 0 {
		return usageError("give a folder", "reading --on %s=%s: it is for run", given.here[0], plan.Here)
	}
	places := []host.Place{{Name: "this folder", Path: existing(".")}}
	for i, p := range given.places {
		places = append(places, host.Place{Name: cmp.Or(p.Name, a.list("on")[i]), Path: p.Path})
	}
	limited, cancel := context.WithTimeout(ctx, factsTime)
	h := host.Gather(limited, places, a.isSet("identify"))
	cancel()
	tuning := host.Tune()
	t := &factTable{w: a.stdout}
	doctorMachine(t, h, tuning)
	t.add("user", a.owner())
	if runtime.GOOS == "darwin" {
		t.add("console", consoleUser())
	}
	doctorDisks(t, h.Disks)
	a.doctorSettings(t)
	err = a.doctorEngines(ctx, t)
	doctorTools(t, a.env["PATH"])
	doctorWarnings(t, h, tuning)
	a.doctorLeftovers(ctx, t)
	return cmp.Or(t.err, err)
}

// factTable prints lines of a name and a value. Values are wrapped after the
// column of the names. It keeps the first error of a write, so that callers
// check once.
type factTable struct {
	w   io.Writer
	err error // of the first write that failed
}

// Widths in characters.
const (
	factWidth = 80
	nameWidth = 15
)

// add prints a fact; an empty value is unknown.
func (t *factTable) add(name, value string) {
	line := wrap(fmt.Sprintf("%-*s", nameWidth, printable(name)), cmp.Or(value, "unknown"), nameWidth, factWidth)
	if _, err := fmt.Fprintln(t.w, line); t.err == nil {
		t.err = err
	}
}

// addHint prints what to do about the fact above, if there is a way.
func (t *factTable) addHint(hint string) {
	if hint != "" {
		t.add("", "hint: "+hint)
	}
}

// addPackages prints the command that installs packages.
func (t *factTable) addPackages(packages []string, remark string) {
	if len(packages) > 0 {
		t.addHint("apt install " + strings.Join(packages, " ") + " (Debian, Ubuntu)" + remark)
	}
}

// doctorMachine prints the facts of the machine that do not depend on a disk.
// Results record the same facts.
func doctorMachine(t *factTable, h result.Host, tuning host.Tuning) {
	program := tool()
	t.add("program", program.Name+" "+program.Version+", "+program.Go)
	t.add("system", strings.TrimSpace(h.OS+" "+h.OSVersion+" "+h.OSBuild)+", "+h.Arch)
	t.add("kernel", h.Kernel)
	t.add("model", h.Model)
	t.add("processor", h.CPU+", "+count(h.CPUs, "processor")+" usable")
	if h.OS == "linux" {
		t.add("governor", strings.Trim(tuning.Governor+" ("+tuning.Driver+")", " ()"))
		t.add("huge pages", tuning.HugePages)
	}
	t.add("memory", sizeOr(h.Memory, "unknown"))
	var limits []string
	if h.CPUQuota > 0 {
		limits = append(limits, fmt.Sprintf("a control group allows %.3g processors", h.CPUQuota))
	}
	if h.MemoryLimit > 0 {
		limits = append(limits, "a control group allows "+sizeOr(h.MemoryLimit, "")+" of memory")
	}
	t.add("limits", cmp.Or(strings.Join(limits, "; "), "none found"))
	if h.Name != "" {
		t.add("host", h.Name+", user "+h.User)
	}
	t.add("virtual", cmp.Or(h.Virtual, "no sign of it"))
	t.add("power", h.Power)
	if h.OS == "darwin" {
		t.add("FileVault", h.FileVault)
	}
	pressure := ""
	if h.MemoryPressure != "" {
		pressure = h.MemoryPressure + " pressure; "
	}
	t.add("memory use", pressure+sizeOr(h.SwapUsed, "no")+" swap in use")
}

// sizeOr formats a number of bytes, with otherwise for 0, which means an
// unknown size.
func sizeOr(n int64, otherwise string) string {
	if n <= 0 {
		return otherwise
	}
	return units.Bytes(n).Human()
}

// owner explains who owns the files that the program makes.
func (a *app) owner() string {
	uid, _, ok := a.sudoCaller()
	switch {
	case ok:
		return fmt.Sprintf("root by sudo: files in folders of user %d, the caller, will belong to that user", uid)
	case os.Geteuid() == 0:
		return "root, not by sudo: files belong to root"
	}
	return fmt.Sprintf("%d, not root", os.Geteuid())
}

// consoleUser reports whether a user is logged in at the screen of a Mac,
// because the services of a session work in the background.
func consoleUser() string {
	fi, err := os.Stat("/dev/console")
	if err != nil {
		return ""
	}
	if uid, ok := hostio.Owner(fi); ok && uid == 0 {
		return "no user is logged in: published figures are from Macs with a user logged in"
	}
	return "a user is logged in"
}

// doctorDisks prints space, file system and device of the working folder, and
// of each folder of --on.
func doctorDisks(t *factTable, disks []result.Disk) {
	for i, d := range disks {
		name, place := "disk here", ""
		if i > 0 {
			name, place = "disk", d.Place+": "
		}
		device := cmp.Or(d.Device, cmp.Or(d.Bus, "unknown")+" device")
		free, total := sizeOr(d.Free, "unknown"), sizeOr(d.Total, "unknown")
		t.add(name, fmt.Sprintf("%s%s free of %s; %s on %s (medium %s)", place, free, total,
			cmp.Or(d.Filesystem, "unknown file system"), device, cmp.Or(d.Medium, "unknown")))
		if d.Encrypted != "" {
			t.add("", "encrypted: "+d.Encrypted)
		}
		if d.Indexed != "" {
			location := cmp.Or(d.Location, "location unknown")
			const format = "%s; Spotlight's indexing is %s; %d local snapshots"
			t.add("", fmt.Sprintf(format, location, d.Indexed, d.Snapshots))
		}
		if d.Path != "" {
			t.add("", d.Path)
		}
	}
}

// warningHints are what to do about the warnings of package host, by kind.
// Kinds without an entry have no remedy.
var warningHints = map[string]string{
	"battery":         "connect the power supply",
	"low-power":       "switch low power mode off in the system's settings",
	"thermal":         "let the machine cool down",
	"cpu-quota":       "raise the limit of the container, or run outside it",
	"busy":            "wait until the other work is done, or stop it",
	"translated":      "use the program that is made for this processor",
	"memory-pressure": "end other programs",
	"nearly-full":     "make room on the disk, or measure on another",
	"image-host":      "measure on a real disk: --on DIR",
	"network":         "measure on a disk of this machine: --on DIR",
	"virtual":         "compare only with runs on the same virtual machine",
}

// doctorWarnings prints what would disturb a measurement now. The result of a
// run has the same warnings.
func doctorWarnings(t *factTable, h result.Host, tuning host.Tuning) {
	warnings := host.Warnings(h)
	for _, w := range warnings {
		t.add("spoiler", w.Text)
		t.addHint(warningHints[w.Kind])
	}
	hints := tuning.Hints()
	for i, w := range tuning.Warnings() {
		t.add("spoiler", w.Text)
		t.addHint(hints[i])
	}
	if len(warnings)+len(hints) == 0 {
		t.add("spoilers", "none found")
	}
}

// doctorLeftovers prints what earlier runs left.
func (a *app) doctorLeftovers(ctx context.Context, t *factTable) {
	state, err := a.stateDir()
	if err != nil {
		return // the error of the engines names it
	}
	for _, l := range a.leftovers(ctx, state) {
		t.add("left over", l.text)
		t.addHint(l.hint)
	}
}

// captureAnswers runs scripts/capture.sh, which records the answers of the disk
// image tools in a folder. On Linux the script uses this program as hdiutil. An
// interrupt is passed on, and the script gets a minute to clean up.
func (a *app) captureAnswers(ctx context.Context, dir string) error {
	o, err := a.hdiutilOptions()
	if err != nil {
		return fmt.Errorf("capturing: %w", err)
	}
	a.chownAtExit(dir)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", scripts.Capture, "capture.sh", dir)
	cmd.Stdout, cmd.Stderr = a.stdout, a.stderr
	cmd.Env = os.Environ()
	if program := o.Hdiutil[0]; program != hdiutil.AppleHdiutil {
		cmd.Env = append(cmd.Env, "DMGBENCH="+program)
	}
	// The script detaches its images when it is interrupted.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("capturing into %q: %w", dir, err)
	}
	return nil
}
