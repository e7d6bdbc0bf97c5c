package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
	"pgregory.net/rapid"

	"dmgbench/internal/result"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenResult is small and has one of everything, hostile names included.
func goldenResult() *result.Result {
	at := func(s int) time.Time {
		return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(s) * time.Second)
	}
	write := func(round int, ns int64) result.Step {
		return result.Step{Index: 4, Do: "write", Phase: "new", Op: "write", Round: round, Session: 1, StartNS: 5e9, DurationNS: ns + 1e6,
			Expect: "ok", Workers: 1, Live: 6_000_000, Cache: &result.Achieved{Asked: "direct", Achieved: "direct"}, Sync: &result.Achieved{Asked: "fsync", Achieved: "full"},
			Span:   &result.Span{GateNS: 5e9, FirstDoneNS: 5e9 + ns, LastDoneNS: 5e9 + ns, Bytes: 6_000_000, BusyNS: ns - 1000, IdleNS: 1000},
			Device: &result.DeviceBytes{Read: 4096, Written: 6_291_456},
			Samples: []result.Sample{
				{File: "new/0001.bin", Bytes: 2_000_000, StartNS: 5e9, DurationNS: ns / 3, Order: 0, Set: 1},
				{File: "=cmd|' /C calc'!A0", Bytes: 4_000_000, StartNS: 5e9 + ns/3, DurationNS: ns/3*2 - 1000, Order: 1, Set: 1},
			}, Warnings: []result.Warning{{Kind: "slow_first", Text: "the first file took twice the median"}}}
	}
	measure := result.Step{Index: 6, Do: "measure", Phase: "new", Round: 1, Session: 1, DurationNS: 2e6, Expect: "ok", Live: 6_000_000,
		Disk: &result.DiskUse{Allocated: 8_400_896, Apparent: 104_857_600, Sparse: true, Bands: 3, BandsFull: 1, VolumeFree: -1, HostFree: 5e9}}
	keys := func(format, enc string) [][2]string { return [][2]string{{"format", format}, {"encryption", enc}} }
	udsb := result.Case{ID: "format=UDSB,encryption=AES-256", Keys: keys("UDSB", "AES-256"), Status: result.Done,
		Target: result.Target{Kind: "image", Place: "external", Format: "UDSB", Encryption: "AES-256", Filesystem: "exFAT",
			Size: 100e6, BandSizeUsed: 8 << 20, Backend: "in-process"},
		Steps: []result.Step{
			{Index: 1, Do: "attach", Round: 1, Session: 1, DurationNS: 12_500_000, Expect: "ok"}, write(1, 3_000_000), measure,
			{Index: 7, Do: "compact", Phase: "end", Round: 1, Session: 1, DurationNS: 70e6, Expect: "ok", BytesFreed: 8 << 20},
			{Index: 8, Do: "resize", Round: 1, Session: 1, DurationNS: 1e6, Expect: "fail", Error: "resizing: no"},
			write(2, 6_000_000)},
		Rounds: []result.CaseRound{{Round: 1, Status: result.Done}, {Round: 2, Status: result.Done}}}
	raw := result.Case{ID: "format=UDRW,encryption=none", Keys: keys("UDRW", "none"), Status: result.Discarded, Reason: "round 2: interrupted in step 3",
		Target: result.Target{Kind: "image", Format: "UDRW", Encryption: "none", Filesystem: "exFAT", Size: 100e6},
		Steps:  []result.Step{write(1, 4_000_000), write(2, 9_000_000)},
		Rounds: []result.CaseRound{{Round: 1, Status: result.Done}, {Round: 2, Status: result.Discarded, Reason: "interrupted in step 3"}}}
	native := result.Case{ID: "target=directory", Keys: [][2]string{{"target", "directory"}}, Baseline: true, Status: result.Skipped,
		Reason: "-no space", Target: result.Target{Kind: "directory"}, Rounds: []result.CaseRound{{Round: 1, Status: result.Skipped, Reason: "-no space"}}}
	two := 2
	table := result.Table{Name: "rates", Title: "Rates, as printed", Caption: "-state 1", Columns: []result.TableLine{{Title: "write", Group: "new", Op: "write", Unit: "GB/s", Digits: &two},
		{Title: "=read", Op: "read"}, {Title: "mounts", Op: result.OpOutcome}}, Rows: []result.TableLine{{Title: "bundle"}, {Title: "native"}}, Cells: [][]result.TableCell{
		{{Case: udsb.ID, Phase: "new", Rounds: 2, Estimate: &result.Estimate{Name: "aggregate", Value: 1.5e9, Unit: "B/s", N: 2, CI: &result.CI{Low: 1.25e9, High: 1.75e9, Level: 0.95, Method: "t on log ratios", Unit: "round"}},
			Published: &result.PublishedValue{Text: "7.62 GB/s", Kind: "is", Low: 7.62e9, High: 7.62e9, Unit: "B/s", Ratio: 0.2, On: "Mac"}, Warnings: []result.Warning{{Kind: "rounds", Text: "only 2 rounds"}}},
			{Why: "not part of the protocol"}, {Case: udsb.ID, Phase: "again", Rounds: 2, Outcome: &result.TableOutcome{Do: "attach", Text: "yes 1 of 2 times, no 1", OK: 1, Failed: 1}}},
		{{Case: native.ID, Why: "case target=directory was skipped"}, {Published: &result.PublishedValue{Text: "about 3 GB/s", Kind: "about", Low: 3e9, High: 3e9, Unit: "B/s"}}, {Fit: "line", Estimate: &result.Estimate{Name: "r2", Value: 0.99, Unit: "1"}}}}}
	p := 0.01
	use := result.Use{Name: "vault", Choice: result.ChosenOne, Chosen: []string{"bundle"}, Reason: "by writing, bundle is the best",
		Criteria: []result.UseCriterion{{Title: "=writing", Op: "write", Unit: "B/s", HigherIsBetter: true, Matters: 0.1}},
		Candidates: []result.UseCandidate{
			{Title: "bundle", Cases: []string{udsb.ID}, Figures: []result.UseFigure{{Rank: result.RankBest, Estimate: &result.Estimate{Name: "aggregate", Value: 2e9, Unit: "B/s", N: 3}}}},
			{Title: "raw", Cases: []string{raw.ID, "other"}, Figures: []result.UseFigure{{Rank: result.RankWorse, P: &p, Estimate: &result.Estimate{Name: "aggregate", Value: 1e9, Unit: "B/s", N: 3,
				CI: &result.CI{Low: 0.9e9, High: 1.1e9, Level: 0.95, Method: "t", Unit: "round"}}, Ratio: &result.Estimate{Name: "ratio", Value: 2, Unit: "1", N: 3, CI: &result.CI{Low: 1.9, High: 2.1, Level: 0.95}}}}},
			{Title: "native", Figures: []result.UseFigure{{Why: "case target=directory was skipped"}}}}}
	return &result.Result{
		Tables: []result.Table{table},
		Uses:   []result.Use{use},
		Schema: 1, Tool: result.Tool{Name: "dmgbench", Version: "0.1.0", Go: "go1.26.0", OS: "linux", Arch: "amd64"}, Run: "quick-1", Status: result.Failed,
		Plan: result.PlanRef{Name: "quick", Title: "Quick \"tour\"", Digest: strings.Repeat("ab", 32)}, Seed: 18446744073709551615, Rounds: 2,
		Sessions: []result.Session{{Index: 1, Started: at(0), Finished: at(90), Boot: "b1", End: result.Clean,
			Host: result.Host{OS: "linux", OSVersion: "6.12", Arch: "amd64", Model: "Board\nX", CPU: "8 × core", CPUs: 2, Memory: 8e9,
				Disks: []result.Disk{{Filesystem: "ext4", Medium: "ssd", Free: 5e9, Total: 9e9}}},
			Engine: result.Engine{Name: "inprocess", Vendor: "dmgbench", Version: "0.1.0", Title: "in-process", Why: "hdiutil cannot work here"}}},
		Departures: []result.Departure{{Kind: "sets", Text: "1 set instead of 10"}},
		Warnings:   []result.Warning{{Kind: "power", Text: "on battery"}},
		Cases:      []result.Case{udsb, raw, native},
		Summaries: []result.Summary{{Case: udsb.ID, Phase: "new", Op: "write", N: 2, Rounds: 2, Bytes: 12e6, Headline: "aggregate",
			Estimates: []result.Estimate{
				{Name: "aggregate", Value: 1.5e9, Unit: "B/s", N: 2, CI: &result.CI{Low: 1.25e9, High: 1.75e9, Level: 0.95, Method: "t on log ratios", Unit: "round"}},
				{Name: "median", Value: 1.4e9, Unit: "B/s", N: 4, Why: "n is too small"}},
			Published:  []result.PublishedValue{{Text: "7.62 GB/s", Kind: "is", Low: 7.62e9, High: 7.62e9, Unit: "B/s", Ratio: 0.2}},
			Departures: []string{"engine", "=sets"}, Warnings: []result.Warning{{Kind: "rounds", Text: "only 2 rounds"}}},
			{Case: udsb.ID, Phase: "new", Op: "allocated", N: 1, Rounds: 1, Headline: "median",
				Estimates: []result.Estimate{{Name: "median", Value: 8400896, Unit: "B", N: 1}}},
			{Case: udsb.ID, Phase: `a"b\c` + "\nd", Op: "bands", N: 1, Rounds: 1, Headline: "median",
				Estimates: []result.Estimate{{Name: "median", Value: 3, Unit: "1", N: 1}}}},
		Claims: []result.Claim{{ID: "twice", Says: "at least twice", By: "author", Scope: "apple", Verdict: result.NotMeasured, Reason: "this engine imitates it"}},
	}
}

func exported(t require.TestingT, r *result.Result, format, table string) string {
	var b bytes.Buffer
	require.NoError(t, Write(&b, []*result.Result{r}, format, table))
	return b.String()
}

func TestGoldenExports(t *testing.T) {
	for file, c := range map[string][2]string{
		"samples.csv": {"csv", ""}, "steps.csv": {"csv", "steps"}, "summaries.csv": {"csv", "summaries"}, "tables.csv": {"csv", "tables"}, "uses.csv": {"csv", "uses"}, "result.json": {"json", ""},
		"samples.jsonl": {"jsonl", ""}, "bench.txt": {"benchfmt", ""}, "metrics.prom": {"openmetrics", ""},
	} {
		got := exported(t, goldenResult(), c[0], c[1])
		path := filepath.Join("testdata", file)
		if *update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err, "make it with -update and look at it")
		assert.Equal(t, string(want), got, file)
	}
}

func TestExportRefuses(t *testing.T) {
	var b bytes.Buffer
	require.ErrorContains(t, Write(&b, []*result.Result{{}}, "json", "steps"), "only csv has tables")
	r := goldenResult()
	r.Summaries[0].Estimates[0].Value = math.NaN()
	for _, f := range Formats {
		require.ErrorContains(t, Write(&b, []*result.Result{r}, f, ""), "summaries[0].estimates[0].value is not a finite number")
	}
	require.Empty(t, b.String())
	full := errors.New("pipe closed")
	for _, f := range Formats {
		require.ErrorIs(t, Write(failing{full}, []*result.Result{goldenResult()}, f, ""), full, f)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// No text cell of any table can be taken for a formula, whatever the names are,
// and every row has a cell for every column.
func TestCSVCellsAreHarmless(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := randomOf[result.Result](rt)
		evil := rapid.StringMatching(`[=+@\t\r\n＝-][a-z0-9"',;\n]{0,4}`)
		for i := range r.Cases {
			r.Cases[i].ID = evil.Draw(rt, "id")
			r.Cases[i].Keys = append(r.Cases[i].Keys, [2]string{"manual", evil.Draw(rt, "value")})
		}
		for _, table := range Tables {
			rows, err := csv.NewReader(strings.NewReader(exported(rt, &r, "csv", table))).ReadAll()
			require.NoError(rt, err)
			require.Len(rt, rows[0], len(Columns(&r, table)))
			for _, cells := range rows {
				for _, cell := range cells {
					if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r\n") {
						require.Regexp(rt, `^-[0-9][0-9.e+-]*$`, cell)
					}
				}
			}
		}
	})
}

func TestCSVColumnsAreDocumented(t *testing.T) {
	for _, table := range Tables {
		seen := map[string]bool{}
		for _, c := range Columns(goldenResult(), table) {
			require.False(t, seen[c.Name], "%s twice in %s", c.Name, table)
			require.NotEmpty(t, c.Doc, "%s of %s", c.Name, table)
			seen[c.Name] = true
		}
	}
}

func TestJSONLines(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(exported(t, goldenResult(), "jsonl", ""), "\n"), "\n")
	require.Len(t, lines, 8)
	counting := 0
	for _, l := range lines {
		var s struct {
			Engine     string
			Counts     bool
			Bytes      int64
			DurationNS int64 `json:"duration_ns"`
			Rate       *float64
		}
		require.NoError(t, json.Unmarshal([]byte(l), &s))
		require.Equal(t, "in-process", s.Engine)
		require.InEpsilon(t, float64(s.Bytes)/float64(s.DurationNS)*1e9, *s.Rate, 1e-12)
		if s.Counts {
			counting++
		}
	}
	require.Equal(t, 6, counting)
}

// parse reads a benchmark file as benchstat does, and fails on any complaint.
func parse(t require.TestingT, text string) []*benchfmt.Result {
	var out []*benchfmt.Result
	rd := benchfmt.NewReader(strings.NewReader(text), "bench.txt")
	for rd.Scan() {
		switch rec := rd.Result().(type) {
		case *benchfmt.Result:
			out = append(out, rec.Clone())
		case *benchfmt.SyntaxError:
			require.NoError(t, rec)
		}
	}
	require.NoError(t, rd.Err())
	return out
}

func TestBenchstatReadsIt(t *testing.T) {
	text := exported(t, goldenResult(), "benchfmt", "")
	results := parse(t, text)
	require.Len(t, results, 6, "rounds that do not count and steps that should fail stay out")
	first := results[0]
	assert.Equal(t, "Write/format=UDSB/encryption=AES-256/phase=new/cycle=0", string(first.Name))
	_, parts := first.Name.Parts()
	assert.Equal(t, "/encryption=AES-256", string(parts[1]), "not a GOMAXPROCS suffix")
	v, ok := first.Value("B/s")
	assert.True(t, ok)
	assert.InEpsilon(t, 2e9, v, 1e-12)
	v, _ = first.Value("sec")
	assert.InEpsilon(t, 0.003, v, 1e-12)
	assert.Equal(t, "Board X 8 × core", first.GetConfig("host"))
	assert.Equal(t, "in-process 0.1.0", first.GetConfig("engine"))
	assert.Equal(t, "full", first.GetConfig("sync"))
	rates := 0
	for i, one := range results {
		_, rated := one.Value("B/s")
		if rated {
			assert.Equal(t, i, rates, "rates come first")
			rates++
			assert.Equal(t, "B/s", one.Values[0].Unit)
			continue
		}
		assert.Empty(t, one.GetConfig("sync"), "no attach or measure has a flush, although writes before it had")
	}
	assert.Positive(t, rates)
	assert.NotContains(t, text, "exact", "sizes on disk differ between rounds")

	rd := benchfmt.NewReader(strings.NewReader(text), "bench.txt")
	for rd.Scan() {
	}
	assert.Equal(t, 1, rd.Units().GetBetter("B/s"))
	assert.Equal(t, -1, rd.Units().GetBetter("sec"))
	assert.Equal(t, -1, rd.Units().GetBetter("allocated-B"))
}

// Several runs are repetitions of the same benchmarks; what is of one run alone is refused.
func TestExportOfSeveralRuns(t *testing.T) {
	one, two := goldenResult(), goldenResult()
	two.Run = "another"
	all := func(format, table string) (string, error) {
		var b bytes.Buffer
		err := Write(&b, []*result.Result{one, two}, format, table)
		return b.String(), err
	}
	text, err := all("benchfmt", "")
	require.NoError(t, err)
	count := map[string]int{}
	for _, r := range parse(t, text) {
		count[string(r.Name)+r.GetConfig("sync")+r.GetConfig("cache")]++
	}
	for _, r := range parse(t, exported(t, one, "benchfmt", "")) {
		count[string(r.Name)+r.GetConfig("sync")+r.GetConfig("cache")] -= 2
	}
	for name, n := range count {
		assert.Zero(t, n, name)
	}
	text, err = all("csv", "steps")
	require.NoError(t, err)
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	single, err := csv.NewReader(strings.NewReader(exported(t, one, "csv", "steps"))).ReadAll()
	require.NoError(t, err)
	assert.Len(t, rows, 2*len(single)-1, "one row of names")
	assert.Equal(t, "another", rows[len(rows)-1][0])
	text, err = all("jsonl", "")
	require.NoError(t, err)
	assert.Equal(t, 2*strings.Count(exported(t, one, "jsonl", ""), "\n"), strings.Count(text, "\n"))
	for _, c := range [][2]string{{"json", ""}, {"openmetrics", ""}, {"csv", "tables"}} {
		_, err := all(c[0], c[1])
		assert.ErrorIs(t, err, ErrUsage, c[0])
	}
	two.Cases[0].Keys = append(two.Cases[0].Keys, [2]string{"more", "1"})
	_, err = all("csv", "")
	assert.ErrorIs(t, err, ErrUsage, "columns differ")
}

// The baseline is named once, also where the plan's case has it as a key, as cases of plans do.
func TestBenchmarkNamesTheBaselineOnce(t *testing.T) {
	names := benchNames(&result.Result{Cases: []result.Case{{Baseline: true, Keys: [][2]string{{"baseline", "true"}}}, {Baseline: true, Keys: [][2]string{{"format", "UDRW"}}}}})
	assert.Equal(t, []string{"/baseline=true", "/format=UDRW/baseline=true"}, names)
}

// A case is named by its keys, else by its id; equal names get numbers, and a baseline is always one.
func TestNamesOfBenchmarks(t *testing.T) {
	key := [][2]string{{"format", "UD RW"}}
	names := benchNames(&result.Result{Cases: []result.Case{{ID: "plain"}, {ID: "x", Keys: key}, {ID: "y", Keys: key}, {ID: "native", Baseline: true}}})
	assert.Equal(t, []string{"/case=plain", "/format=UD_RW", "/format=UD_RW/nr=3", "/baseline=true/case=native"}, names)
}

func TestNumbersAreExact(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1e-6: "0.000001", 9e-7: "9e-07", 999_999_999_999_999: "999999999999999", 1e15: "1e+15", -2.5: "-2.5", -1e-9: "-1e-09",
	} {
		assert.Equal(t, want, number(v))
	}
}

func TestUnknownSessionsAreEmpty(t *testing.T) {
	r := &result.Result{Sessions: []result.Session{{Index: 4}, {Index: 2}}}
	assert.Same(t, &r.Sessions[0], sessionOf(r, 4))
	assert.Same(t, &r.Sessions[1], sessionOf(r, 2))
	assert.Equal(t, &result.Session{}, sessionOf(r, 0))
}

// Whatever the names are, every line is one result, and cases stay apart.
func TestBenchmarkNamesAreSound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := goldenResult()
		text := rapid.StringOf(rapid.SampledFrom([]rune("a1 -/=\t\n\u00a0\u0085\u2028_é\x00%")))
		for i := range r.Cases[:2] {
			r.Cases[i].Keys = [][2]string{{"k", text.Draw(rt, "value")}}
			for j := range r.Cases[i].Steps {
				r.Cases[i].Steps[j].Phase = text.Draw(rt, "phase")
				r.Cases[i].Steps[j].Do = text.Draw(rt, "do")
			}
		}
		r.Sessions[0].Host.Model, r.Plan.Name, r.Run = text.Draw(rt, "model"), text.Draw(rt, "plan"), text.Draw(rt, "run")
		results := parse(rt, exported(rt, r, "benchfmt", ""))
		require.Len(rt, results, 6)
		names := benchNames(r)
		require.NotEqual(rt, names[0], names[1])
		for _, res := range results {
			require.False(rt, strings.ContainsAny(string(res.Name), " \t\n"))
			_, parts := res.Name.Parts()
			require.Equal(rt, "/cycle=0", string(parts[len(parts)-1]))
		}
	})
}

// A parser of the text format by its grammar: families stand together, names,
// labels and values are well formed, no series comes twice, and the end is there.
func TestOpenMetricsIsWellFormed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := randomOf[result.Result](rt)
		text := exported(rt, &r, "openmetrics", "")
		lines := strings.Split(text, "\n")
		require.Equal(rt, []string{"# EOF", ""}, lines[len(lines)-2:])
		var families, series []string
		for _, l := range lines[:len(lines)-2] {
			if name, ok := strings.CutPrefix(l, "# HELP "); ok {
				name, _, _ = strings.Cut(name, " ")
				require.NotContains(rt, families, name)
				families = append(families, name)
			}
			if strings.HasPrefix(l, "#") {
				require.Regexp(rt, `^# (HELP|TYPE|UNIT) `+families[len(families)-1]+` `, l)
				continue
			}
			require.Regexp(rt, `^`+families[len(families)-1]+`\{[a-z_]+="([^"\\]|\\["\\n])*"(,[a-z_]+="([^"\\]|\\["\\n])*")*\} -?[0-9.]+(e[+-][0-9]+)?$`, l)
			id := l[:strings.LastIndex(l, " ")]
			require.False(rt, slices.Contains(series, id), "%s twice", id)
			series = append(series, id)
		}
	})
}

// Two series with the same labels would make a collector refuse the whole file.
func TestOpenMetricsHasNoSeriesTwice(t *testing.T) {
	r := goldenResult()
	r.Summaries = append(r.Summaries, r.Summaries[0])
	require.Equal(t, 1, strings.Count(exported(t, r, "openmetrics", ""), "\ndmgbench_rate_bytes_per_second{"))
}

// The canary writes and reads in one phase of one action: as one benchmark they would be repetitions of each other.
func TestBenchmarksOfTheCanaryAreTwo(t *testing.T) {
	r := goldenResult()
	step := r.Cases[0].Steps[1]
	step.Do, step.Phase = "canary", "canary"
	read := step
	read.Op = "read"
	r.Cases[0].Steps = []result.Step{step, read}
	var names []string
	for _, b := range parse(t, exported(t, r, "benchfmt", "")) {
		if strings.HasPrefix(string(b.Name), "Canary") {
			names = append(names, string(b.Name))
		}
	}
	assert.Equal(t, []string{"Canary/format=UDSB/encryption=AES-256/phase=canary/op=write/cycle=0",
		"Canary/format=UDSB/encryption=AES-256/phase=canary/op=read/cycle=0"}, names)
}

// Where nobody knows the free space of the host, as on the simulated device, the cell is empty.
func TestUnknownSpaceOfTheHostIsNoNumber(t *testing.T) {
	r := goldenResult()
	r.Cases[0].Steps[2].Disk.HostFree = -1
	rows, err := csv.NewReader(strings.NewReader(exported(t, r, "csv", "steps"))).ReadAll()
	require.NoError(t, err)
	at := slices.Index(rows[0], "host_free_bytes")
	for _, row := range rows[1:] {
		assert.Empty(t, row[at])
	}
}

// Every result that can be read can be written in every format.
func FuzzWrite(f *testing.F) {
	b, err := goldenResult().MarshalIndent()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"schema":1,"cases":[{"status":"done","steps":[{"span":{}},{"stream":{"ratio":1e308}}]}]}`))
	f.Add([]byte(`{"schema":1,"sessions":null,"tables":[{"cells":[[{}],[{}]],"rows":[{}],"columns":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := result.ParseResult("r", bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, format := range Formats {
			require.NoError(t, Write(io.Discard, []*result.Result{r}, format, ""))
		}
		for _, table := range Tables {
			require.NoError(t, Write(io.Discard, []*result.Result{r}, "csv", table))
		}
	})
}
