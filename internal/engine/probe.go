package engine

import (
	"context"
	"errors"
	"fmt"

	"dmgbench/internal/hostio"
	"dmgbench/internal/workload"
)

const (
	probeSize  = 16 << 20 // bytes of the image that Probe makes
	probeWrite = 4096     // bytes of the file that it writes
)

// Probe tries whether e works in dir: it makes a small image (16 MB UDRW, or a
// native folder if e supports no UDRW), attaches it, writes a file, flushes,
// detaches and removes everything. The error names what failed.
func Probe(ctx context.Context, e Engine, dir *hostio.Dir) (err error) {
	s := Spec{Format: "UDRW", Size: probeSize, VolumeName: "probe"}
	if no := e.Supports(s); no != nil {
		if e.Supports(Spec{}) != nil {
			return fmt.Errorf("probing engine %q: %w", e.Info().Name, no)
		}
		s = Spec{}
	}
	c, err := e.Create(ctx, dir, ".dmgbench-probe", s)
	if err != nil {
		return fmt.Errorf("probing engine %q: %w", e.Info().Name, err)
	}
	clean := context.WithoutCancel(ctx)
	err = errors.Join(probeFile(ctx, clean, c), c.Remove(clean))
	if err != nil {
		return fmt.Errorf("probing engine %q: %w", e.Info().Name, err)
	}
	return nil
}

func probeFile(ctx, clean context.Context, c Container) error {
	a, err := c.Attach(ctx, AttachOptions{})
	if err != nil {
		return err
	}
	err = probeWriting(a.Volume())
	_, e := a.Detach(clean, err != nil)
	return errors.Join(err, e)
}

func probeWriting(v workload.Volume) error {
	f, err := v.Create("probe", probeWrite, workload.FileOptions{})
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, probeWrite), 0)
	if err == nil {
		_, err = f.Sync(hostio.SyncFull)
	}
	return errors.Join(err, f.Close())
}
