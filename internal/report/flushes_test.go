package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/report/reporttest"
)

// TestFlushesAreCounted: the table of speeds says how many flush calls a file took, where they were counted.
func TestFlushesAreCounted(t *testing.T) {
	p, r := reporttest.Sample()
	assert.Empty(t, NewView(p, r).flushNote(), "records of older runs have no count")
	for i := range r.Cases {
		each := map[string]int64{"UDRW": 2, "UDSB": 3}[r.Cases[i].Target.Format]
		for j := range r.Cases[i].Steps {
			if s := &r.Cases[i].Steps[j]; s.Op == "write" {
				s.Flushes = max(each, 1) * int64(len(s.Samples))
			}
		}
	}
	v := NewView(p, r)
	assert.Contains(t, v.flushNote(), "Flush calls for each file written, counted: "+
		"2 (read-write image (UDRW) · unencrypted; read-write image (UDRW) · AES-256), "+
		"3 (sparse bundle (UDSB) · unencrypted; sparse bundle (UDSB) · AES-256), 1 (native folder). ")
	assert.Contains(t, v.Sections[0].Tables[0].Notes, Note{0, v.flushNote()})
}
