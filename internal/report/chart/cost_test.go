package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"dmgbench/internal/plan"
	"dmgbench/internal/report"
	"dmgbench/internal/result"
)

// layered makes cases that write the same 100 MB in three rounds, each in its own number of milliseconds, longer by 1
// ms a round, with 5 ms around the clock. A name is directory, preallocated, or format and encryption.
func layered(ms map[string]int64, order ...string) (*plan.Plan, *result.Result) {
	p, r := lawful(1, 4)
	r.Cases, r.Summaries, r.Rounds = nil, nil, 3
	for _, name := range order {
		var format, encryption string
		var by string
		fmt.Sscanf(name, "%s %s %s", &format, &encryption, &by)
		c := result.Case{ID: name, Status: result.Done, Keys: [][2]string{{"format", format}, {"encryption", encryption}},
			Target: result.Target{Kind: "image", Format: format, Encryption: encryption, Filesystem: "exFAT", ServedBy: by}}
		if by != "" {
			c.Keys = append(c.Keys, [2]string{"served_by", by})
		}
		if format == "directory" || format == "preallocated" {
			c.Keys, c.Target = [][2]string{{"target", "directory"}}, result.Target{Kind: "directory"}
			if format == "preallocated" {
				c.Keys = append(c.Keys, [2]string{"preallocate", "true"})
			} else {
				c.Baseline = true
			}
		}
		for round := 1; round <= 3; round++ {
			c.Rounds = append(c.Rounds, result.CaseRound{Round: round, Status: result.Done})
			ns := (ms[name] + int64(round) - 2) * 1e6
			c.Steps = append(c.Steps, result.Step{Do: "write", Op: "write", Phase: "new", Round: round, Workers: 1, DurationNS: ns + 5e6, Session: 1,
				Span: &result.Span{LastDoneNS: ns, BusyNS: ns, Bytes: 100e6}, Samples: []result.Sample{{Bytes: 100e6, DurationNS: ns}}})
		}
		r.Cases = append(r.Cases, c)
	}
	return p, r
}

var layers = map[string]int64{"directory": 100, "preallocated": 90, "UDRW none": 130, "UDSB none": 150, "UDSB AES-256": 230, "UDRW AES-256": 120}

// partsOf reads a picture's table as "part time" by case.
func partsOf(c report.Chart) map[string][]string {
	out := map[string][]string{}
	for _, row := range c.Table.Rows {
		out[row[0].Text] = append(out[row[0].Text], row[1].Text+" "+row[2].Text)
	}
	return out
}

func TestTimeIsSplitIntoWhatTheRunHolds(t *testing.T) {
	p, r := layered(layers, "directory", "preallocated", "UDRW none", "UDSB none", "UDSB AES-256", "UDRW AES-256")
	c := chartOf(t, p, r, "cost-1-1")
	got := partsOf(c)
	outside := "harness, outside the clock +5.00 ms"
	native, raw := "native folder 100 ms", "raw image and file system +30.0 ms"
	assert.Equal(t, []string{native, outside}, got["native folder"])
	assert.Equal(t, []string{native, raw, "format +20.0 ms", "encryption +80.0 ms", outside}, got["sparse bundle (UDSB) · AES-256"])
	assert.Equal(t, []string{native, raw, "encryption −10.0 ms", outside}, got["read-write image (UDRW) · AES-256"], "a part may take less")
	assert.Contains(t, fmt.Sprint(got), "space reserved beforehand −10.0 ms")
	assert.Contains(t, c.Notes[0], "In process there is no mount and no FUSE")
	assert.Contains(t, c.Notes[0], "One without a cap goes on beyond the scale")
	for _, row := range c.Table.Rows { // all rounds move together, so that differences do not vary
		if row[1].Text == "format" {
			assert.Equal(t, "20.0 ms to 20.0 ms", row[4].Text)
		}
	}
	svg := newEngine(t).draw(t, c, 900, "LIGHT")
	for _, text := range []string{">+80.0<", ">−10.0<", "time, ms", "Where the time went: write", "95 % Student t over rounds", "mean of 3 rounds"} {
		assert.Contains(t, svg, text)
	}
}

// What no case separates stays one part, whose name has all of it.
func TestPartsThatCannotBeTold(t *testing.T) {
	p, r := layered(layers, "directory", "UDSB AES-256")
	assert.Contains(t, fmt.Sprint(partsOf(chartOf(t, p, r, "cost-1-1"))), "raw image and file system, format, encryption +130 ms")
	p, r = layered(layers, "directory", "UDRW none", "UDSB AES-256")
	assert.Contains(t, fmt.Sprint(partsOf(chartOf(t, p, r, "cost-1-1"))), "format, encryption +100 ms")
}

// Where the run says what served its images, FUSE is a part of its own, or named with what it cannot be told from.
func TestHelperIsALayer(t *testing.T) {
	ms := map[string]int64{"directory": 100, "UDRW none loop": 110, "UDRW none fuse+loop": 140, "UDSB none fuse+loop": 150,
		"UDSB AES-256 fuse+loop": 180, "UDRW AES-256 fuse+loop": 165}
	for name, c := range map[string]struct {
		order []string
		parts string
	}{
		"all":      {[]string{"directory", "UDRW none loop", "UDRW none fuse+loop", "UDSB none fuse+loop", "UDSB AES-256 fuse+loop"}, "native folder 100 ms, raw image and file system +10.0 ms, FUSE +30.0 ms, format +10.0 ms, encryption +30.0 ms"},
		"raw":      {[]string{"directory", "UDRW none loop", "UDRW none fuse+loop", "UDRW AES-256 fuse+loop"}, "native folder 100 ms, raw image and file system +10.0 ms, FUSE +30.0 ms, encryption +25.0 ms"},
		"no raw":   {[]string{"directory", "UDRW none loop", "UDSB none fuse+loop", "UDSB AES-256 fuse+loop"}, "native folder 100 ms, raw image and file system +10.0 ms, FUSE, format +40.0 ms, encryption +30.0 ms"},
		"two":      {[]string{"directory", "UDRW none loop", "UDSB AES-256 fuse+loop"}, "native folder 100 ms, raw image and file system +10.0 ms, FUSE, format, encryption +70.0 ms"},
		"no loop":  {[]string{"directory", "UDRW none fuse+loop", "UDSB none fuse+loop"}, "native folder 100 ms, raw image and file system, FUSE +40.0 ms, format +10.0 ms"},
		"no below": {[]string{"directory", "UDSB AES-256 fuse+loop"}, "native folder 100 ms, raw image and file system, FUSE, format, encryption +80.0 ms"},
	} {
		p, r := layered(ms, c.order...)
		rows := chartOf(t, p, r, "cost-1-1").Table.Rows
		var got []string
		for _, row := range rows[len(rows)-1-strings.Count(c.parts, "ms"):] {
			got = append(got, row[1].Text+" "+row[2].Text)
		}
		assert.Equal(t, c.parts+", harness, outside the clock +5.00 ms", strings.Join(got, ", "), name)
	}
	p, r := layered(map[string]int64{"directory": 1, "UDRW none kernel": 2, "UDRW none helper": 3}, "directory", "UDRW none kernel", "UDRW none helper")
	assert.Contains(t, fmt.Sprint(partsOf(chartOf(t, p, r, "cost-1-1"))), "helper process +1.00 ms", "where the tool does not say more than it was asked")
}

// Rounds pair: one that did other work, or that the directory lacks, is left out, and none left is no picture.
func TestOnlyTheSameWorkIsSplit(t *testing.T) {
	p, r := layered(layers, "directory", "UDSB none")
	r.Cases[1].Steps[0].Span.Bytes--
	c := chartOf(t, p, r, "cost-1-1")
	assert.Equal(t, "2", c.Table.Rows[2][5].Text)
	parts := (&run{View: report.NewView(p, r)}).costs(picture{"write", "new"})[r.Cases[0].ID][1].parts
	assert.InDelta(t, 0.1005, parts[0].time.Value, 1e-9, "the mean of rounds 2 and 3")
	for i := range r.Cases[0].Steps {
		r.Cases[0].Steps[i].Workers = 2
	}
	assert.Negative(t, index(NewView(p, r).Charts, "cost-1-1"))
	for _, alone := range []string{"UDSB none", "directory"} {
		assert.Negative(t, index(NewView(layered(layers, alone)).Charts, "cost-1-1"), "%s has no partner", alone)
	}
}

func TestIdleWorkersAreTheHarness(t *testing.T) {
	p, r := layered(layers, "directory", "UDSB none")
	for i := range r.Cases {
		for j := range r.Cases[i].Steps {
			s := &r.Cases[i].Steps[j]
			s.Workers, s.Span.IdleNS = 2, 8e6
		}
	}
	got := partsOf(chartOf(t, p, r, "cost-1-1"))
	assert.Contains(t, fmt.Sprint(got), "native folder 96.0 ms", "of two workers 4 ms each")
	assert.Contains(t, fmt.Sprint(got), "harness, inside the clock +4.00 ms")
}

func TestEveryEngineSaysWhatItsPartsAre(t *testing.T) {
	p, r := layered(layers, "directory", "UDSB none")
	for engine, want := range map[result.Engine]string{
		{Name: "hdiutil", Vendor: "Apple"}: "macOS mounts", {Name: "hdiutil", Vendor: "dmgbench"}: "served by FUSE", {Name: "simulated"}: "stated laws",
	} {
		r.Sessions[0].Engine = engine
		assert.Contains(t, chartOf(t, p, r, "cost-1-1").Notes[0], want)
	}
}
