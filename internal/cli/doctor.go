package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"dmgbench/internal/host"
	"dmgbench/internal/plan"
	"dmgbench/internal/result"
	"dmgbench/internal/units"

	"github.com/spf13/cobra"
)

type doctorOptions struct {
	On       []string
	Identify bool
	Capture  string
}

func (a *app) newDoctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use: "doctor", GroupID: "maintain", Args: between(0, 0, ""),
		Short: "say what this machine can do, and what would spoil a measurement",
		Long: `Say what this machine is and how much space there is, which engines work and
which one a run would take, what can be measured with it, which tools that open
or check images are missing, which settings are in force and where each comes
from (flag, environment, settings file), whether the disk's counters and APFS's
log can be read, what would spoil a measurement now, and what earlier runs left,
with the command that removes it. A fact that the system does not tell is
"unknown". Nothing is left behind.

With --capture a script (scripts/capture.sh) asks the disk image tools
everything that this program depends on, with small images of every format, and
keeps output and status of each command. It takes a few minutes on a Mac.
Passphrases, names of the user and of the machine, and paths of other images are
replaced; check the folder before you send it to anybody.

EXIT STATUS
  0  an engine works
  1  none does, or another error
  2  bad usage`,
		Example: "  dmgbench doctor\n  dmgbench doctor --on /mnt/fast\n  dmgbench doctor --capture answers",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd, o) },
	}
	cmd.Flags().StringArrayVar(&o.On, "on", nil, "look at the disk under a folder too, as `[NAME=]DIR`; repeatable")
	cmd.Flags().StringVar(&o.Capture, "capture", "", "keep what the disk image tools answer in a new or empty `folder`")
	cmd.Flags().BoolVar(&o.Identify, "identify", false, "print host name, user and paths")
	return cmd
}

func (a *app) runDoctor(cmd *cobra.Command, o doctorOptions) error {
	ctx := cmd.Context()
	if o.Capture != "" {
		return a.capture(ctx, o.Capture)
	}
	given, err := readPlaces(o.On)
	if err != nil {
		return err
	}
	if len(given.here) > 0 {
		return &usageError{err: fmt.Errorf("reading --on %s=%s: it is for run", given.here[0], plan.Here), hint: "give a folder"}
	}
	asked := []host.Place{{Name: "this folder", Path: existing(".")}}
	for i, p := range given.dirs {
		asked = append(asked, host.Place{Name: cmp.Or(p.Name, o.On[i]), Path: p.Path})
	}
	limited, cancel := context.WithTimeout(ctx, factsTime)
	h := host.Gather(limited, asked, o.Identify)
	cancel()
	tuning := host.Tune()
	s := &sheet{w: a.out}
	writeMachine(s, h, tuning)
	s.line("user", a.owner())
	if seen := console(); seen != "" {
		s.line("console", seen)
	}
	writeDisks(s, h.Disks)
	a.writeSettings(s, cmd, o.Identify)
	err = a.writeEngines(ctx, s)
	writeTools(s, a.env["PATH"])
	writeSpoilers(s, h, tuning)
	a.writeLeftovers(ctx, s)
	return cmp.Or(s.err, err)
}

// sheet writes lines of a name and a value, the value wrapped at 80 columns.
type sheet struct {
	w   io.Writer
	err error // of the first write that did not succeed
}

const (
	sheetWidth = 80
	nameWidth  = 14
)

func (s *sheet) line(name, value string) {
	words := strings.Fields(printable(cmp.Or(value, "unknown")))
	text, column := fmt.Sprintf("%-*s", nameWidth, printable(name)), max(len([]rune(name)), nameWidth)
	for _, word := range words {
		n := len([]rune(word))
		if column > nameWidth && column+1+n > sheetWidth {
			text, column = text+"\n"+strings.Repeat(" ", nameWidth), nameWidth
		}
		text, column = text+" "+word, column+1+n
	}
	if _, err := fmt.Fprintln(s.w, text); s.err == nil {
		s.err = err
	}
}

func writeMachine(s *sheet, h result.Host, tuning host.Tuning) {
	t := tool()
	s.line("program", t.Name+" "+t.Version+", "+t.Go)
	s.line("system", strings.Join(strings.Fields(h.OS+" "+h.OSVersion+" "+h.OSBuild), " ")+", "+h.Arch)
	s.line("kernel", h.Kernel)
	s.line("model", h.Model)
	s.line("processor", strings.TrimSpace(h.CPU+", "+count(h.CPUs, "processor")+" usable"))
	if h.OS == "linux" {
		s.line("governor", strings.Trim(tuning.Governor+" ("+tuning.Driver+")", " ()"))
		s.line("huge pages", tuning.HugePages)
	}
	s.line("memory", bytesOr(h.Memory))
	s.line("limits", limits(h))
	if h.Name != "" {
		s.line("host", h.Name+", user "+h.User)
	}
	s.line("virtual", cmp.Or(h.Virtual, "no sign of it"))
	s.line("power", h.Power)
	if h.OS == "darwin" {
		s.line("FileVault", h.FileVault)
	}
	s.line("memory use", strings.TrimPrefix(h.MemoryPressure+" pressure; ", " pressure; ")+cmp.Or(bytesUsed(h.SwapUsed), "no")+" swap in use")
}

// limits are those of the control group that the program runs in.
func limits(h result.Host) string {
	var list []string
	if h.CPUQuota > 0 {
		list = append(list, fmt.Sprintf("a control group allows %.3g processors", h.CPUQuota))
	}
	if h.MemoryLimit > 0 {
		list = append(list, "a control group allows "+units.Bytes(h.MemoryLimit).Human()+" of memory")
	}
	return cmp.Or(strings.Join(list, "; "), "none seen")
}

func writeDisks(s *sheet, disks []result.Disk) {
	for i, d := range disks {
		s.line([]string{"disk here", "disk"}[min(i, 1)], fmt.Sprintf("%s%s free of %s; %s on %s (medium %s)", map[bool]string{true: d.Place + ": "}[i > 0],
			bytesOr(d.Free), bytesOr(d.Total), cmp.Or(d.Filesystem, "unknown file system"),
			cmp.Or(d.Device, strings.TrimSpace(cmp.Or(d.Bus, "unknown")+" device")), cmp.Or(d.Medium, "unknown")))
		if d.Encrypted != "" {
			s.line("", "encrypted: "+d.Encrypted)
		}
		if d.Indexed != "" {
			s.line("", fmt.Sprintf("%s; Spotlight's indexing is %s; %d local snapshots", cmp.Or(d.Location, "location unknown"), d.Indexed, d.Snapshots))
		}
		if d.Path != "" {
			s.line("", d.Path)
		}
	}
}

func bytesUsed(n int64) string {
	if n <= 0 {
		return ""
	}
	return units.Bytes(n).Human() + " of"
}

func bytesOr(n int64) string {
	if n <= 0 {
		return "unknown"
	}
	return units.Bytes(n).Human()
}

// writeSpoilers lists what the facts say against measuring now, each with what helps against it.
// writeLeftovers lists what earlier runs left.
func (a *app) writeLeftovers(ctx context.Context, s *sheet) {
	state, err := a.stateDir()
	if err != nil {
		return // the settings say why
	}
	for _, l := range a.leftovers(ctx, state) {
		s.line("left over", l.text)
		s.line("", "hint: "+l.hint)
	}
}

func writeSpoilers(s *sheet, h result.Host, tuning host.Tuning) {
	help := map[string]string{
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
		"virtual":         "results stand beside each other, not beside those of a real disk",
	}
	list := host.Warnings(h)
	for i, w := range tuning.Warnings() {
		help[w.Kind] = tuning.Hints()[i]
		list = append(list, w)
	}
	if len(list) == 0 {
		s.line("spoilers", "nothing seen that would spoil a measurement now")
	}
	for _, w := range list {
		s.line("spoiler", w.Text)
		if help[w.Kind] != "" {
			s.line("", "hint: "+help[w.Kind])
		}
	}
}
