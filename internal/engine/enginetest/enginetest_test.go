package enginetest_test

import (
	"testing"

	"dmgbench/internal/clock"
	"dmgbench/internal/engine"
	"dmgbench/internal/engine/directory"
	"dmgbench/internal/engine/enginetest"
	"dmgbench/internal/engine/inprocess"
)

func TestInProcess(t *testing.T) {
	for _, s := range []engine.Spec{
		{Format: "UDRW", Size: 64 << 20, VolumeName: "Bench"},
		{Format: "UDSB", Size: 64 << 20, BandSize: 1 << 20, VolumeName: "Bench"},
	} {
		t.Run(s.Format, func(t *testing.T) {
			enginetest.Run(t, func() engine.Engine { return inprocess.New(clock.NewReal().Wall) }, t.TempDir(),
				enginetest.Options{Spec: s, Convert: []string{"UDRW", "UDSB", "UDZO", "ULFO", "UDTO"}})
		})
	}
}

func TestDirectory(t *testing.T) {
	enginetest.Run(t, func() engine.Engine { return directory.Engine{} }, t.TempDir(), enginetest.Options{})
}
