package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhoseAFileIs(t *testing.T) {
	for _, f := range []struct {
		owner  int
		user   int
		caller string
		system string
		want   bool
	}{
		{501, 501, "", "darwin", true}, {502, 501, "", "darwin", false}, {0, 501, "", "darwin", false},
		{0, 0, "", "linux", true}, {501, 0, "", "linux", false}, {501, 0, "501", "linux", true}, {502, 0, "501", "linux", false}, {501, 501, "502", "linux", true},
		{501, 0, "-1", "linux", false}, {0, 0, "501", "linux", true}, {502, 501, "502", "linux", false},
		{99, 0, "501", "darwin", true}, {99, 0, "", "darwin", true}, {99, 501, "", "darwin", false}, {99, 0, "501", "linux", false},
	} {
		assert.Equal(t, f.want, isOurs(f.owner, f.user, f.caller, f.system), "%+v", f)
	}
}
