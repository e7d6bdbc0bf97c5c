package result

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOnlyAbsolutePathsAreHidden(t *testing.T) {
	list := addHidden(addHidden(addHidden(nil, "failed", "<run>"), "/", "<root>"), "/srv/failed", "<place>")
	line := []byte(`{"status":"failed","error":"opening /srv/failed/x: /srv/failedly"}`)
	assert.Equal(t, `{"status":"failed","error":"opening \u003cplace\u003e/x: /srv/failedly"}`, string(hidePaths(line, list)))
}

// A path is not taken out of a longer name, whatever that continues with.
func TestLongerNamesAreNotRedacted(t *testing.T) {
	list := addHidden(nil, "/srv/run", "<run>")
	for _, after := range []string{"2", "0", "9", "a", "z", "A", "Z", "_", "-", "é"} {
		line := []byte("opening /srv/run" + after + "/f")
		assert.Equal(t, string(line), string(hidePaths(line, list)), after)
	}
	for _, after := range []string{"", "/", "/f", " ", `"`, ":", ","} {
		assert.Equal(t, `opening \u003crun\u003e`+after, string(hidePaths([]byte("opening /srv/run"+after), list)), after)
	}
	assert.Equal(t, `/srv/run1 \u003crun\u003e`, string(hidePaths([]byte("/srv/run1 /srv/run"), list)))
}
