package enginetest

import (
	"os"
	"testing"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/directory"
	"dmgbench/internal/bench/engine/inprocess"
	"dmgbench/internal/system/clock"
)

func TestInProcess(t *testing.T) {
	for _, s := range []engine.Spec{
		{Format: "UDRW", Size: 32 << 20, VolumeName: "Bench"},
		{Format: "UDSB", Size: 32 << 20, BandSize: 1 << 20, VolumeName: "Bench"},
		{Format: "UDSB", Size: 32 << 20, BandSize: 1 << 20, VolumeName: "Bench", Encryption: "AES-256"},
		{Format: "UDSP", Size: 32 << 20, VolumeName: "Bench", Encryption: "AES-128"},
		{Format: "UDRW", Size: 32 << 20, VolumeName: "Bench", Encryption: "AES-256"},
	} {
		t.Run(s.Format+s.Encryption, func(t *testing.T) {
			o := Options{Spec: s, Convert: []string{"UDRW", "UDSB", "UDZO", "ULFO", "UDTO"}}
			if s.Format == "UDSB" && os.Getenv("DMGBENCH_LONG") == "" {
				o.Convert = []string{"UDRW", "UDZO"} // to every format from one is enough
			}
			if s.Encryption != "" {
				if s.Format != "UDSB" && os.Getenv("DMGBENCH_LONG") == "" {
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
