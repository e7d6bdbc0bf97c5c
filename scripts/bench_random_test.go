package scripts_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBenchRandomRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"--pairs", "6"}, {"--pairs"}, {"--fio", "no-such-fio"}} {
		out, err := exec.CommandContext(t.Context(), "bash", append([]string{"bench-random.sh"}, args...)...).CombinedOutput()
		assert.Error(t, err, args)
		assert.Regexp(t, `--jobs LIST|want at least 7|not installed`, string(out))
	}
}
