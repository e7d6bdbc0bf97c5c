package hdiutil

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
)

// An encrypted ASIF of the work-alike's cannot be: the case is skipped for that reason, not failed.
func TestWorkAlikeMakesNoEncryptedASIF(t *testing.T) {
	tools := capabilities{present: map[string]bool{"diskutil": true}, diskutilFS: true,
		formats: map[string]map[string]bool{"diskutil": {"ASIF": true}}, filesystems: map[string]bool{"exFAT": true}}
	s := engine.Spec{Format: "ASIF", Encryption: "AES-256", Filesystems: []string{"exFAT"}, Size: 32 << 20}
	e := &Engine{can: tools}
	e.o.Vendor = "dmgbench"
	var no *engine.UnsupportedError
	assert.ErrorAs(t, e.Supports(s), &no)
	assert.Contains(t, no.Error(), "does not support encryption of ASIF images")
	e.o.Vendor = "Apple"
	assert.NoError(t, e.Supports(s))
}

// An encrypted image is reported so from diskutil's own list.
func TestEncryptedASIFIsReported(t *testing.T) {
	r := newRig(t, FakeConfig{})
	for want, c := range map[string]*image{"yes": r.create("x", spec("ASIF", encrypted("AES-256"))), "": r.create("y", spec("ASIF"))} {
		rep, err := c.Check(t.Context(), engine.CheckOptions{What: "container"})
		require.NoError(t, err)
		assert.Equal(t, want, rep.Reported["encrypted"])
		assert.Empty(t, rep.Findings)
	}
	r.clean()
}
