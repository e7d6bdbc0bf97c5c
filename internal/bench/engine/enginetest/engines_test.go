package enginetest

import (
	"testing"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/system/clock"
)

func TestInProcess(t *testing.T) {
	for _, s := range []engine.Spec{
		{Format: "UDRW"}, {Format: "UDSB"}, {Format: "UDSB", Encryption: "AES-256"},
		{Format: "UDSP", Encryption: "AES-128"}, {Format: "UDRW", Encryption: "AES-256"},
	} {
		s.VolumeName, s.Size = "Bench", map[bool]int64{false: 16 << 20, true: 32 << 20}[long]
		if s.Format == "UDSB" {
			s.BandSize = 1 << 20
		}
		t.Run(s.Format+s.Encryption, func(t *testing.T) {
			o := Options{Spec: s, Convert: []string{"UDRW", "UDSB", "UDZO", "ULFO", "UDTO"}}
			if s.Format == "UDSB" && !long {
				o.Convert = []string{"UDRW", "UDZO"} // to every format from one is enough
			}
			if s.Encryption != "" {
				if s.Format != "UDSB" && !long {
					t.Skip("long: set DMGBENCH_LONG=1 (make test-long)")
				}
				o.Spec.Passphrase, o.Remounts = []byte("of the contract of engines"), 5
			}
			if s.Encryption != "" && s.Format == "UDRW" {
				o.Keeps = "an encrypted raw image has no block that was never written"
			}
			runContract(t, func() engine.Engine {
				e := inprocess.New(clock.NewReal().Wall)
				e.Iterations = 1000 // the derivation has tests of its own, and was nine tenths of the time of this one
				return e
			}, t.TempDir(), o)
		})
	}
}

func TestDirectory(t *testing.T) {
	runContract(t, func() engine.Engine { return directory.Engine{} }, t.TempDir(), Options{})
}
