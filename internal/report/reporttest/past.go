package reporttest

import (
	"fmt"
	"time"

	"dmgbench/internal/result"
)

// era is a stretch of runs of one version, with the share of the rates of encrypted sparse bundles that it has.
type era struct {
	system, build, tool string
	runs                int
	encrypted           float64
}

var eras = []era{
	{"26.2", "25C56", "0.4.0", 4, 1}, {"26.4", "25E241", "0.4.0", 5, 1.004}, {"26.4", "25E241", "0.5.0", 3, 1.002}, {"26.5", "25F71", "0.5.0", 5, 0.86},
	{"26.6", "25G12", "0.5.0", 1, 0.85},
}

// Past are runs of one plan on one Mac over five versions, the oldest first: in macOS
// 26.5 writing to an encrypted sparse bundle became slower by a seventh. Sessions
// differ by two percent. One run has a warning of its own, one is not finished.
func Past() []*result.Result {
	var out []*result.Result
	for _, e := range eras {
		for range e.runs {
			out = append(out, pastRun(e, len(out)+1))
		}
	}
	for i := range out[6].Summaries {
		if s := &out[6].Summaries[i]; s.Op == "write" && s.Phase == "new" && s.Case == "format=UDSB,encryption=none" {
			s.Warnings = append(s.Warnings, result.Warning{Kind: "throttled", Text: "the last round was 9 % slower than the first"})
		}
	}
	out[15].Status = result.Unfinished
	return out
}

func pastRun(e era, n int) *result.Result {
	b := newRun("encryption-cost-2026", "The cost of encryption rises", 3)
	b.r.Run = fmt.Sprintf("p%03d", n)
	b.r.Tool.Version, b.r.Tool.OS, b.r.Tool.Arch = e.tool, "darwin", "arm64"
	s := &b.r.Sessions[0]
	s.Started = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC).AddDate(0, 0, 7*n)
	s.Finished = s.Started.Add(20 * time.Minute)
	s.Engine = result.Engine{Name: "hdiutil", Vendor: "Apple", Version: "macOS " + e.system, Title: "hdiutil (Apple, macOS " + e.system + ")"}
	s.Host.OS, s.Host.OSVersion, s.Host.OSBuild, s.Host.Kernel, s.Host.Arch = "darwin", e.system, e.build, "25.2.0", "arm64"
	s.Host.Model, s.Host.CPU, s.Host.CPUs, s.Host.Cores = "Mac16,11", "Apple M4 Pro", 12, nil
	s.Host.Disks = []result.Disk{{Filesystem: "APFS", Device: "APPLE SSD AP2048Z", Bus: "Apple Fabric", Medium: "ssd", Free: 900e9, Total: 2000e9}}
	for _, c := range []struct {
		format, encryption string
		law                law
	}{
		{"UDRW", "none", law{5.61e9, 6.05e9, 6e-6}}, {"UDRW", "AES-256", law{2.62e9, 3.58e9, 7e-6}},
		{"UDSB", "none", law{6.18e9, 6.27e9, 14e-6}}, {"UDSB", "AES-256", law{4.51e9 * e.encrypted, 4.92e9, 17e-6}},
	} {
		session := 1 + 0.01*wobble("session", n, c.format, c.encryption)
		c.law.write, c.law.read = c.law.write*session, c.law.read*session
		rc := result.Case{ID: "format=" + c.format + ",encryption=" + c.encryption, Status: result.Done,
			Keys:   [][2]string{{"format", c.format}, {"encryption", c.encryption}},
			Target: result.Target{Kind: "image", Format: c.format, Encryption: c.encryption, Filesystem: "APFS", Size: 4e9}}
		b.measure(&rc, c.law, []string{"new", "part-full"})
	}
	b.summarise()
	return b.r
}
