package hdiutil

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/engine"
)

// An encrypted ASIF of the work-alike's cannot be: the case is skipped for that reason, not failed.
func TestWorkAlikeMakesNoEncryptedASIF(t *testing.T) {
	tools := abilities{diskutil: true, encrypts: true, chooses: true, images: map[string]bool{"ASIF": true}, filesystems: map[string]bool{"exFAT": true}}
	s := engine.Spec{Format: "ASIF", Encryption: "AES-256", Filesystems: []string{"exFAT"}, Size: 32 << 20}
	e := &Engine{can: tools}
	e.o.Vendor = "dmgbench"
	var no *engine.UnsupportedError
	assert.ErrorAs(t, e.Supports(s), &no)
	assert.Contains(t, no.Error(), "does not support encryption of ASIF images")
	e.o.Vendor = "Apple"
	assert.NoError(t, e.Supports(s))
}
