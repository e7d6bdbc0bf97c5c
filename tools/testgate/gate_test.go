package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const stream = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestTool"}
{"Action":"output","Package":"p","Test":"TestTool","Output":"=== RUN   TestTool\n"}
{"Action":"output","Package":"p","Test":"TestTool","Output":"    x_test.go:9: fsck is not installed\n"}
{"Action":"output","Package":"p","Test":"TestTool","Output":"--- SKIP: TestTool (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestTool"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}
{"Action":"skip","Package":"q"}
`

func runGate(text, could string) (string, error) {
	var w strings.Builder
	g := gate{w: &w, could: regexp.MustCompile(could)}
	err := g.read(strings.NewReader(text))
	return w.String(), err
}

func TestSkipThatCouldHaveRunFails(t *testing.T) {
	const plain = "ok  \tp\t0.1s\n?   \tq\t[no test files]\n"
	out, err := runGate(stream, "$.")
	assert.NoError(t, err)
	assert.Equal(t, plain, out)
	out, err = runGate(stream, "needs root")
	assert.NoError(t, err)
	assert.Equal(t, plain, out)
	out, err = runGate(stream, "needs root|fsck is not installed")
	assert.EqualError(t, err, "skipped, and could have run here:\n  p TestTool: x_test.go:9: fsck is not installed")
	assert.Equal(t, plain, out)
}

func TestFailuresArePrinted(t *testing.T) {
	text := `{"Action":"output","Package":"p","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"p","Test":"TestX","Output":"    x_test.go:3: two is not one\n"}
{"Action":"output","Package":"p","Test":"TestX","Output":"--- FAIL: TestX (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestX"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`
	out, err := runGate(text+stream, "$.")
	assert.EqualError(t, err, "1 packages did not pass")
	assert.Equal(t, "    x_test.go:3: two is not one\n--- FAIL: TestX (0.00s)\nFAIL\nFAIL\tp\t0.1s\nok  \tp\t0.1s\n?   \tq\t[no test files]\n", out)

	out, err = runGate(`{"ImportPath":"p","Action":"build-output","Output":"p.go:1: syntax\n"}`+"\n"+`{"ImportPath":"p","Action":"build-fail"}`+"\n", "$.")
	assert.Error(t, err)
	assert.Equal(t, "p.go:1: syntax\n", out)
}

func TestNoPackageIsAnError(t *testing.T) {
	for _, text := range []string{"", "go: no such tool\n", `{"Action":"start","Package":"p"}`} {
		_, err := runGate(text, "$.")
		assert.ErrorContains(t, err, "no package was tested", text)
	}
	out, _ := runGate("go: no such tool\n", "$.")
	assert.Equal(t, "go: no such tool\n", out)
}
