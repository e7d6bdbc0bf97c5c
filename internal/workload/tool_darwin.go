package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"dmgbench/internal/result"
)

// streamTool lets Apple's compression_tool do the stream. The sample covers the
// program's life and the flush of what it wrote.
func streamTool(ctx context.Context, vol Volume, spec StreamSpec, o Options) (Outcome, error) {
	host, ok := vol.(HostPather)
	if !ok {
		return Outcome{}, &UnsupportedError{What: "codec " + spec.Codec, Why: "the volume is not mounted, so that " + compressionTool + " cannot reach it"}
	}
	src, err := OpenSource(vol, spec.From, o)
	if err != nil {
		return Outcome{}, err
	}
	defer src.Close()
	// The file is made first: a name that exists must not be written over.
	dst, err := vol.Create(spec.To, 0, o.fileOptions(0))
	if err != nil {
		return Outcome{}, fmt.Errorf("creating: %w", err)
	}
	var said bytes.Buffer
	line := clamped(o.QoS, compressionTool, compressionArgs(spec, host.HostPath(spec.From), host.HostPath(spec.To)))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stderr = &said
	found := cacheOf(src)
	done := timeOne(ctx, o, spec.To, src.Size(), dst, func() error {
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("running %s: %w: %s", compressionTool, err, strings.TrimSpace(said.String()))
		}
		return nil
	})
	if err := errors.Join(done.err, dst.Close()); err != nil {
		return Outcome{}, err
	}
	sizes, err := sizesOf(vol, []Item{{Name: spec.To}})
	if err != nil {
		return Outcome{}, err
	}
	out := done.out
	out.Stream = streamed(spec, src.Size(), sizes[spec.To])
	out.Cache = &result.Achieved{Asked: o.Cache, Achieved: found}
	if o.QoS != QoSDefault {
		out.QoS = &result.Achieved{Asked: o.QoS, Achieved: "taskpolicy -c " + o.QoS}
	}
	out.warn("stream", "%s did the I/O: through the page cache, and its start is part of the time", compressionTool)
	return out, nil
}
