package pipeline

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPipeline delivers in order, keeps no more values than asked for, and ends with the first error.
func TestPipeline(t *testing.T) {
	for _, fail := range []string{"", "work", "deliver"} {
		broken := errors.New(fail)
		var got []int
		var inFlight, most atomic.Int64
		err := Run(t.Context(), 3, make([]int, 5), func(submit func(func(*int)) bool) {
			for i := range 200 {
				if !submit(func(v *int) { *v = i; most.Store(max(most.Load(), inFlight.Add(1))) }) {
					return
				}
			}
		}, func(i *int) error {
			if fail == "work" && *i == 100 {
				return broken
			}
			return nil
		}, func(i *int) error {
			inFlight.Add(-1)
			if fail == "deliver" && *i == 100 {
				return broken
			}
			got = append(got, *i)
			return nil
		})
		for i := range got {
			require.Equal(t, i, got[i])
		}
		assert.LessOrEqual(t, most.Load(), int64(5))
		if fail == "" {
			require.NoError(t, err)
			require.Len(t, got, 200)
			continue
		}
		require.ErrorIs(t, err, broken)
		assert.Len(t, got, 100)
	}
}
