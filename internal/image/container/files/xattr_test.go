package files

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAttributeNames(t *testing.T) {
	assert.Equal(t, "com.apple.diskimages.fsck", attributeName("darwin", "com.apple.diskimages.fsck"))
	assert.Equal(t, "user.com.apple.diskimages.fsck", attributeName("linux", "com.apple.diskimages.fsck"))
	assert.Equal(t, "user.checksum", attributeName("linux", "user.checksum"))
	assert.Equal(t, "user.username", attributeName("linux", "username"))
	assert.Empty(t, attributeName("linux", ""))
}
