package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOnlyAbsolutePathsAreHidden(t *testing.T) {
	list := addHidden(addHidden(addHidden(nil, "failed", "<run>"), "/", "<root>"), "/srv/failed", "<place>")
	line := []byte(`{"status":"failed","error":"opening /srv/failed/x: /srv/failedly"}`)
	assert.Equal(t, `{"status":"failed","error":"opening \u003cplace\u003e/x: /srv/failedly"}`, string(hideAll(line, list)))
}
