package attach

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestProcessStart(t *testing.T) {
	start, ok := processStart(os.Getpid())
	assert.True(t, ok)
	assert.Positive(t, start)
	_, ok = processStart(1 << 30)
	assert.False(t, ok)
}

func TestFolderName(t *testing.T) {
	tests := map[string]string{
		"Plain": "Plain", "a/b\x00c": "a_b_c", "..": "", ".hidden": "hidden", "  blanks ": "blanks", "\xff": "_",
		strings.Repeat("ä", 300): strings.Repeat("ä", 100),
	}
	for label, want := range tests {
		assert.Equal(t, want, folderName(label), "%q", label)
	}
}

func TestBusyErrorNamesHolders(t *testing.T) {
	err := busyError("/x", []string{"vim (process 7)", "less (process 9)"})
	assert.Equal(t, `"/x" is busy: held by vim (process 7), less (process 9)`, err.Error())
	assert.ErrorIs(t, err, unix.EBUSY)
	assert.Equal(t, `"/x" is busy`, busyError("/x", nil).Error())
}
