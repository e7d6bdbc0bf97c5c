package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"dmgbench/internal/clock"
	"dmgbench/internal/host"
	"dmgbench/internal/result"
	"dmgbench/internal/units"

	"github.com/spf13/cobra"
)

// tools are the programs of the system that can make or check images.
var tools = []string{"hdiutil", "diskutil", "fsck.exfat", "mkfs.exfat", "fusermount3"}

func (a *app) newDoctorCommand() *cobra.Command {
	var on []string
	var identify bool
	cmd := &cobra.Command{
		Use: "doctor", GroupID: "maintain", Args: cobra.NoArgs,
		Short: "say what this machine can do, and what would spoil a measurement",
		Long: `Say what this machine is, which engine a run would take and why, how much space
there is, which tools of the system are there, and what would spoil a measurement.
A fact that the system does not tell is "unknown".

EXIT STATUS
  0  an engine works
  1  none does, or another error`,
		Example: "  dmgbench doctor --on /mnt/fast",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runDoctor(cmd.Context(), on, identify)
		},
	}
	cmd.Flags().StringArrayVar(&on, "on", nil, "`[NAME=]DIR`: look at the disk under this folder too")
	cmd.Flags().BoolVar(&identify, "identify", false, "print host name, user and paths")
	return cmd
}

func (a *app) runDoctor(ctx context.Context, on []string, identify bool) error {
	ps, err := places(on)
	if err != nil {
		return err
	}
	asked := []host.Place{{Name: "this folder", Path: existing(".")}}
	for _, p := range ps {
		asked = append(asked, host.Place{Name: cmp.Or(p.Name, p.Path), Path: p.Path})
	}
	limited, cancel := context.WithTimeout(ctx, factsTime)
	h := host.Gather(limited, asked, identify)
	cancel()
	writeMachine(a.out, h)
	writeDisks(a.out, h.Disks)
	for _, t := range tools {
		path, err := exec.LookPath(t)
		if err != nil {
			path = "not found"
		}
		line(a.out, "tool "+t, path)
	}
	writeSpoilers(a.out, h)
	e, why, err := pick(ctx, "auto", clock.NewReal())
	if err != nil {
		line(a.out, "engine", "none works")
		return err
	}
	line(a.out, "engine", e.Info().Title+" ("+why+")")
	return nil
}

func line(w io.Writer, name, value string) {
	fmt.Fprintf(w, "%-18s %s\n", name, printable(cmp.Or(value, "unknown")))
}

func writeMachine(w io.Writer, h result.Host) {
	t := tool()
	line(w, "program", t.Name+" "+t.Version+", "+t.Go)
	line(w, "system", strings.Join(strings.Fields(h.OS+" "+h.OSVersion+" "+h.OSBuild), " ")+", "+h.Arch)
	line(w, "kernel", h.Kernel)
	line(w, "model", h.Model)
	line(w, "processor", strings.TrimSpace(h.CPU+", "+count(h.CPUs, "processor")+" usable"))
	line(w, "memory", bytesOr(h.Memory))
	if h.Name != "" {
		line(w, "host", h.Name+", user "+h.User)
	}
	line(w, "virtual", cmp.Or(h.Virtual, "no sign of it"))
	line(w, "power", h.Power)
}

func writeDisks(w io.Writer, disks []result.Disk) {
	for _, d := range disks {
		line(w, "disk of "+d.Place, fmt.Sprintf("%s on %s (%s), %s free of %s", cmp.Or(d.Filesystem, "unknown file system"),
			cmp.Or(d.Device, "unknown device"), cmp.Or(d.Medium, "unknown"), bytesOr(d.Free), bytesOr(d.Total)))
		if d.Path != "" {
			line(w, "  path", d.Path)
		}
	}
}

func bytesOr(n int64) string {
	if n <= 0 {
		return "unknown"
	}
	return units.Bytes(n).Human()
}

// writeSpoilers lists what the facts say against measuring now.
func writeSpoilers(w io.Writer, h result.Host) {
	var list []string
	if h.Power == "battery" {
		list = append(list, "on battery")
	}
	if h.LowPower {
		list = append(list, "low power mode")
	}
	if h.CPUQuota > 0 {
		list = append(list, fmt.Sprintf("a control group allows %.3g processors", h.CPUQuota))
	}
	if host.Virtual(h) {
		list = append(list, "a hypervisor may cache what looks like the disk")
	}
	for _, b := range h.Busy {
		list = append(list, b)
	}
	if h.Thermal != "" && h.Thermal != "nominal" {
		list = append(list, "thermal state "+h.Thermal)
	}
	line(w, "would spoil it", cmp.Or(strings.Join(list, "; "), "nothing seen"))
}
