package workload

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// The numbers as Apple's headers have them: a system call takes any, and a wrong
// command did nothing and said nothing.
func TestPoliciesOfMacOS(t *testing.T) {
	for name, v := range map[string][2]int{
		"PRIO_DARWIN_THREAD": {3, prioDarwinThread}, "PRIO_DARWIN_PROCESS": {4, prioDarwinProc}, "PRIO_DARWIN_BG": {0x1000, prioDarwinBG},
		"IOPOL_CMD_GET": {0x00000001, iopolGet}, "IOPOL_CMD_SET": {0x00000002, iopolSet}, "IOPOL_TYPE_DISK": {0, iopolDisk},
		"IOPOL_SCOPE_THREAD": {1, iopolThread}, "IOPOL_UTILITY": {4, iopolUtility},
	} {
		assert.Equal(t, v[0], v[1], name)
	}
	p := ioPolicy{scope: 1, kind: 2, policy: 3}
	assert.Equal(t, [3]int32{1, 2, 3}, *(*[3]int32)(unsafe.Pointer(&p)), "struct _iopol_param_t: three ints in this order")
}

// What cannot be given to a codec's threads is said, not left out.
func TestStreamTellsOfItsQoS(t *testing.T) {
	v := newFake()
	o := Options{Clock: v.clock, Data: randomData(t), QoS: QoSUtility}
	_, err := Write(t.Context(), v, items(10_000), Options{Clock: v.clock, Data: randomData(t)})
	require.NoError(t, err)
	out, err := Stream(t.Context(), v, StreamSpec{From: items(10_000)[0].Name, To: "packed", Codec: "zstd"}, o)
	require.NoError(t, err)
	assert.Equal(t, &result.Achieved{Asked: QoSUtility, Achieved: QoSDefault}, out.QoS)
	require.NotEmpty(t, out.Warnings)
	assert.Equal(t, "qos", out.Warnings[len(out.Warnings)-1].Kind)
}
