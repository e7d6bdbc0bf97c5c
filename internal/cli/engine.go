package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/inprocess"
	"dmgbench/internal/hostio"
)

// probeSize is enough for the smallest exFAT volume, in bytes.
const probeSize = 8 << 20

// pick gives the engine that is asked for and says why it is this one. auto is
// told what works only after a small image has been made, attached and detached.
func pick(ctx context.Context, name string, c clock.Clock) (engine.Engine, string, error) {
	e := inprocess.New(c.Wall)
	if name != "auto" {
		return e, "asked for with --engine " + name, nil
	}
	if err := probe(ctx, e); err != nil {
		return nil, "", fmt.Errorf("probing engine %q: %w", e.Info().Title, err)
	}
	return e, "auto: it made, attached and detached a small image; this version has no engine for Apple's tools", nil
}

// probe makes, attaches, detaches and removes a small image in a temporary folder.
func probe(ctx context.Context, e engine.Engine) (err error) {
	path, err := os.MkdirTemp("", "dmgbench-probe-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	dir, err := hostio.OpenDir(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	c, err := e.Create(ctx, dir, "probe", engine.Spec{Format: "UDRW", Encryption: "none",
		Filesystems: []string{"exFAT"}, Size: probeSize, VolumeName: "Probe", Backend: "auto", Cache: hostio.CacheBuffered})
	if err != nil {
		return fmt.Errorf("creating a small image: %w", err)
	}
	at, err := c.Attach(ctx, engine.AttachOptions{Cache: hostio.CacheBuffered})
	if err != nil {
		return fmt.Errorf("attaching a small image: %w", err)
	}
	if _, err := at.Detach(ctx, false); err != nil {
		return fmt.Errorf("detaching a small image: %w", err)
	}
	return c.Remove(ctx)
}
