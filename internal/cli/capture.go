package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"dmgbench/internal/engine/hdiutil"
	"dmgbench/scripts"
)

// capture runs scripts/capture.sh, which records the answers of this machine's disk image tools in dir.
func (a *app) capture(ctx context.Context, dir string) error {
	o, err := a.hdiutilOptions()
	if err != nil {
		return fmt.Errorf("capturing: %w", err)
	}
	a.leaves(dir)
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", scripts.Capture, "capture.sh", dir)
	cmd.Stdout, cmd.Stderr = a.out, a.err
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
