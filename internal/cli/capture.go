package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"dmgbench/internal/engine/hdiutil/capture"
	"dmgbench/internal/host"
)

// capture asks the disk image tools of this machine everything, and keeps the answers in dir.
func (a *app) capture(ctx context.Context, dir string) error {
	o, err := a.hdiutilOptions()
	if err != nil {
		return fmt.Errorf("capturing: %w", err)
	}
	h := host.Gather(ctx, nil, false)
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	a.leaves(dir)
	c, err := capture.Run(ctx, dir, capture.Options{
		Hdiutil: o.Hdiutil, Diskutil: o.Diskutil, Vendor: o.Vendor, Now: a.clock.Wall(),
		System:     strings.Join(strings.Fields(map[bool]string{true: "macOS"}[h.OS == "darwin"]+" "+h.OSVersion+" "+h.OSBuild), " "),
		Passphrase: []byte(hex.EncodeToString(secret)),
		Say:        func(text string) { fmt.Fprintln(a.err, printable(text)) },
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s of %s in %s\n", count(len(c.Answers), "answer"), c.System, printable(dir))
	return err
}
