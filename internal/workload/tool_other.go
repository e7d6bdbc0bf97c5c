//go:build !darwin

package workload

import "context"

// streamTool refuses: only macOS has the program.
func streamTool(_ context.Context, _ Volume, spec StreamSpec, _ Options) (Outcome, error) {
	return Outcome{}, &UnsupportedError{What: "codec " + spec.Codec, Why: compressionTool + " is part of macOS; use zstd, s2 or gzip"}
}
