package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

func TestClamped(t *testing.T) {
	assert.Equal(t, []string{"/bin/tool", "-x"}, clamped(QoSDefault, "/bin/tool", []string{"-x"}))
	assert.Equal(t, []string{"/usr/sbin/taskpolicy", "-c", "background", "/bin/tool", "-x"}, clamped(QoSBackground, "/bin/tool", []string{"-x"}))
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
