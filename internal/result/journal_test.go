package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"dmgbench/internal/system/hostio"
)

// memory is a journal file; room is how many bytes it takes before it is full.
type memory struct {
	data  []byte
	room  int
	syncs int
}

var errFull = errors.New("no space left on device")

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	n := min(len(p), max(0, m.room-int(off)))
	end := int(off) + n
	if len(m.data) < end {
		m.data = append(m.data, make([]byte, end-len(m.data))...)
	}
	copy(m.data[off:], p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.data).ReadAt(p, off)
}

func (m *memory) Sync(mode hostio.SyncMode) (hostio.SyncMode, error) { m.syncs++; return mode, nil }

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// journalOf writes records through the real writer, one second apart.
func journalOf(t testing.TB, recs ...Record) []byte {
	t.Helper()
	m := &memory{room: math.MaxInt}
	w := newWriter(m, "", nil, 0, true)
	for i, r := range recs {
		if r.At.IsZero() {
			r.At = start.Add(time.Duration(i) * time.Second)
		}
		require.NoError(t, w.Append(r))
	}
	require.NoError(t, w.Sync())
	return m.data
}

func runRecord(rounds int, cases ...string) Record {
	r := &RunStart{ID: "r1", Tool: Tool{Name: "dmgbench"}, Plan: PlanRef{Name: "quick"}, Rounds: rounds, Seed: 7}
	for _, id := range cases {
		r.Cases = append(r.Cases, PlanCase{ID: id, Keys: [][2]string{{"format", id}}, Target: Target{Kind: "image", Format: id}})
	}
	return Record{Run: r}
}

// sampleRecords is one of every kind.
func sampleRecords() []Record {
	return []Record{
		runRecord(1, "a", "b"),
		{Session: &Session{Index: 1, Host: Host{OS: "linux", Cores: []Cores{{Count: 2}}}}},
		{Round: &RoundStart{Round: 1, Order: []string{"b", "a"}}},
		{CaseStart: &CaseStart{Case: "b", Round: 1, Container: "b.sparsebundle", Place: "external"}},
		{StepStart: &StepStart{Case: "b", Round: 1, Index: 0, Do: "write", Phase: "new"}},
		stepRecord("b", 1, 0),
		{Pause: &Pause{Case: "b", Round: 1, Step: 1, Container: "b.sparsebundle", Identity: "x", Message: "turn"}},
		{CaseEnd: &CaseEnd{Case: "b", Round: 1, Status: Done}},
		{Departure: &Departure{Kind: "engine", Text: "in-process"}},
		{Warning: &WarningRecord{Case: "b", Warning: Warning{Kind: "power", Text: "on battery"}}},
		{CaseEnd: &CaseEnd{Case: "a", Round: 1, Status: Skipped, Reason: "no ASIF"}},
		{SessionEnd: &SessionEnd{Session: 1, End: Clean}},
		{RunEnd: &RunEnd{Status: Done}},
	}
}

func stepRecord(id string, round, index int) Record {
	return Record{Step: &StepEnd{Case: id, Round: round, Step: Step{Index: index, Do: "write", Phase: "new",
		Round: round, Session: 1, DurationNS: int64(1_000_000 + 1000*round + index), Expect: "ok",
		Samples: []Sample{{File: "f0001", Bytes: 2_000_000, DurationNS: 1_000_000}},
		Span:    &Span{FirstDoneNS: 1_000_000, LastDoneNS: 1_000_000, Bytes: 2_000_000, BusyNS: 1_000_000, Waves: 1}}}}
}

func TestJournalRoundTrip(t *testing.T) {
	recs, torn, err := parseJournal(bytes.NewReader(journalOf(t, sampleRecords()...)), JournalFile)
	require.NoError(t, err)
	assert.Nil(t, torn)
	require.Len(t, recs, len(sampleRecords()))
	for i, want := range sampleRecords() {
		want.Kind, _, _ = want.payload()
		want.Schema, want.Seq, want.At = SchemaVersion, i+1, start.Add(time.Duration(i)*time.Second)
		assert.Equal(t, *completed(t, &want), recs[i], "record %d", i+1)
	}
}

// Random steps and sessions come back as they were.
func TestJournalRoundTripRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		recs := []Record{runRecord(3, "a")}
		for range rapid.IntRange(0, 4).Draw(rt, "n") {
			step := randomOf[Step](rt)
			step.StartNS, step.DurationNS = max(step.StartNS, 0), max(step.DurationNS, 0)
			step.Operations, step.OperationsSpan = nil, nil // as TestOperations has them
			if step.Samples != nil || step.Span != nil {
				step.Samples, step.Span = stepRecord("a", 1, 0).Step.Step.Samples, stepRecord("a", 1, 0).Step.Step.Span
				step.DurationNS = max(step.DurationNS, 1_000_000)
			}
			step.Round = rapid.IntRange(1, 3).Draw(rt, "round")
			session := randomOf[Session](rt)
			session.Index = rapid.IntRange(0, 9).Draw(rt, "index")
			recs = append(recs, Record{Step: &StepEnd{Case: "a", Round: step.Round, Step: step}},
				Record{Session: &session})
		}
		got, torn, err := parseJournal(bytes.NewReader(journalOf(t, recs...)), JournalFile)
		require.NoError(rt, err)
		require.Nil(rt, torn)
		require.Len(rt, got, len(recs))
		for i := range recs[1:] {
			require.Equal(rt, recs[i+1].Step, got[i+1].Step)
			require.Equal(rt, recs[i+1].Session, got[i+1].Session)
		}
	})
}

// However much of the last record is missing, all records before it are there.
func TestTornAtEveryByte(t *testing.T) {
	recs := sampleRecords()[:6]
	data := journalOf(t, recs...)
	last := bytes.LastIndexByte(data[:len(data)-1], '\n') + 1
	for cut := last; cut < len(data); cut++ {
		j, err := readJournal(bytes.NewReader(data[:cut]), JournalFile)
		require.NoError(t, err, "cut at %d", cut)
		require.Len(t, j.records, len(recs)-1)
		require.EqualValues(t, last, j.whole)
		require.Equal(t, cut > last, len(j.warnings) == 1, "cut at %d", cut)
	}
	holes := bytes.Clone(data) // a power cut can leave zeros where a block was not written
	clear(holes[last+5 : last+40])
	got, torn, err := parseJournal(bytes.NewReader(holes), JournalFile)
	require.NoError(t, err)
	require.Len(t, got, len(recs)-1)
	require.Contains(t, torn.Text, "line 6")
}

func TestReaderRefuses(t *testing.T) {
	good := string(journalOf(t, sampleRecords()...))
	lines := strings.SplitAfter(good, "\n")
	replaced := func(i int, with string) string {
		l := append([]string(nil), lines...)
		l[i] = with
		return strings.Join(l, "")
	}
	edit := func(i int, old, new string) string { // as somebody does who makes the checksum fit
		require.Contains(t, lines[i], old)
		return replaced(i, string(addChecksum([]byte(strings.Replace(withoutChecksums(lines[i]), old, new, 1)))))
	}
	for name, c := range map[string]struct{ text, want, hint string }{
		"garbage in the middle": {replaced(2, "what?\n"), "line 3: not a record", "only the last line"},
		"zeros in the middle":   {replaced(2, strings.Repeat("\x00", 50)+"\n"), "line 3", "only the last line"},
		"two torn lines":        {replaced(11, "{\n") + "{", "line 12", "only the last line"},
		"blank line":            {replaced(2, "\n"), "line 3", "only the last line"},
		"line missing":          {replaced(2, ""), "line 3: record number 4 follows number 2", "only the last line"},
		"line twice":            {replaced(2, lines[2]+lines[2]), "line 4: record number 3 follows number 3", ""},
		"foreign schema":        {edit(2, `"schema":1`, `"schema":2`), "line 3: schema 2", "another version"},
		"foreign last line":     {edit(12, `"schema":1`, `"schema":99`), "line 13: schema 99", "another version"},
		"no schema":             {replaced(2, string(addChecksum([]byte("{\"kind\":\"round\"}\n")))), "line 3: schema 0", ""},
		"wrong type":            {edit(2, `"seq":3`, `"seq":"3"`), "line 3: not a record", ""},
		"payload of other kind": {edit(2, `"kind":"round"`, `"kind":"step"`), "does not contain that", ""},
		"no time":               {edit(2, `"at":"2026-05-01T12:00:02Z"`, `"at":"0001-01-01T00:00:00Z"`), "no time", ""},
		"climbing container":    {edit(3, "b.sparsebundle", "../../home"), "not a plain file name", ""},
		"climbing place":        {edit(3, `"external"`, `"/etc"`), "not a plain file name", ""},
		"climbing pause":        {edit(6, "b.sparsebundle", "..\\x.dmg\\"), "line 7", ""},
		"option as run id":      {edit(0, `"r1"`, `"-rf"`), `name "-rf": not a plain file name`, ""},
		"round nought":          {edit(2, `"round":1`, `"round":0`), "round 0 is not between", ""},
		"status":                {edit(12, `"done"`, `"fine"`), `status "fine" is none of`, ""},
		"not a journal":         {"a,b\n1,2\n", "line 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := parseJournal(strings.NewReader(c.text), JournalFile)
			e, ok := errors.AsType[*Error](err)
			require.True(t, ok, "%v", err)
			assert.Contains(t, e.Error(), c.want)
			assert.Contains(t, e.Hint, c.hint)
		})
	}
}

func TestEmptyJournal(t *testing.T) {
	recs, _, err := parseJournal(strings.NewReader(""), "j")
	require.NoError(t, err)
	require.Empty(t, recs)
}

// Long lines come through.
func TestLongLine(t *testing.T) {
	rec := stepRecord("a", 1, 0)
	for i := range 5000 {
		rec.Step.Step.Samples = append(rec.Step.Step.Samples, Sample{File: fmt.Sprintf("f%05d", i), Bytes: int64(i)})
		rec.Step.Step.Span.Bytes += int64(i)
	}
	recs, _, err := parseJournal(bytes.NewReader(journalOf(t, runRecord(1, "a"), rec)), "j")
	require.NoError(t, err)
	require.Len(t, recs[1].Step.Step.Samples, 5001)
}

// When the disk is full nothing is lost: later attempts write over the torn piece.
func TestWriterSurvivesFullDisk(t *testing.T) {
	recs := sampleRecords()
	want := journalOf(t, recs...)
	for room := 0; room < len(want); room += 37 {
		m := &memory{room: room}
		w := newWriter(m, "", nil, 0, true)
		failed := false
		for i, r := range recs {
			r.At = start.Add(time.Duration(i) * time.Second)
			require.NoError(t, w.Append(r))
			if err := w.Sync(); err != nil {
				require.ErrorIs(t, err, errFull)
				failed = true
				before, _, err := parseJournal(bytes.NewReader(m.data), "j") // what a crash would leave
				require.NoError(t, err)
				require.LessOrEqual(t, len(before), i)
			}
		}
		require.True(t, failed)
		m.room = math.MaxInt
		require.NoError(t, w.Sync())
		require.Equal(t, string(want), string(m.data))
	}
}

// A volatile journal is handed to the system at once and never flushed.
func TestVolatileJournalIsNotFlushed(t *testing.T) {
	recs := sampleRecords()
	m := &memory{room: math.MaxInt}
	w := newWriter(m, "", nil, 0, true)
	w.Volatile()
	for i, r := range recs {
		r.At = start.Add(time.Duration(i) * time.Second)
		require.NoError(t, w.Append(r))
		require.NoError(t, []func() error{w.Sync, w.Flush}[i%2]())
		clear(m.data[:max(bytes.LastIndexByte(m.data[:len(m.data)-1], '\n'), 0)]) // what is written is not written again
	}
	assert.Zero(t, m.syncs)
	all := journalOf(t, recs...)
	require.Len(t, m.data, len(all))
	last := bytes.LastIndexByte(all[:len(all)-1], '\n')
	assert.Equal(t, string(all[last:]), string(m.data[last:]))
	assert.Empty(t, strings.Trim(string(m.data[:last]), "\x00"))
}

func TestWriterRefuses(t *testing.T) {
	w := newWriter(&memory{}, "", nil, 0, true)
	require.ErrorContains(t, w.Append(sampleRecords()[1]), "no time")
	at := func(r Record) Record { r.At = start; return r }
	require.ErrorContains(t, w.Append(at(sampleRecords()[1])), "the first record of a journal, and no other, is a run record")
	require.NoError(t, w.Append(at(runRecord(1, "a"))))
	require.ErrorContains(t, w.Append(at(runRecord(1, "a"))), "and no other, is a run record")
	bad := at(stepRecord("a", 1, 0))
	bad.Step.Step.Stream = &Stream{Ratio: math.Inf(1)}
	require.EqualError(t, w.Append(bad),
		"appending step record to the journal: step.step.stream.ratio is not a finite number")
	require.Error(t, w.Append(at(Record{CaseStart: &CaseStart{Round: 1, Container: "a/b"}})))
	require.NoError(t, w.Append(at(stepRecord("a", 1, 0))), "a refused record does not cost the next one its place")
	require.Equal(t, 2, w.seq)
}

func TestPathsStayOut(t *testing.T) {
	for _, identify := range []bool{false, true} {
		m := &memory{room: math.MaxInt}
		w := newWriter(m, "/Users/howard/runs/1", nil, 0, true)
		w.Hide("/Users/howard", "~")
		w.Hide(`/Volumes/Big "Disk"`, "<external>")
		run := runRecord(1, "a")
		run.Run.Identify = identify
		step := stepRecord("a", 1, 0)
		step.Step.Step.Error = `writing "/Volumes/Big "Disk"/x": see /Users/howard/runs/1/a.dmg, /Users/howard/z, /Users/howardson`
		for _, r := range []Record{run, step} {
			r.At = start
			require.NoError(t, w.Append(r))
		}
		require.NoError(t, w.Flush())
		recs, _, err := parseJournal(bytes.NewReader(m.data), "j")
		require.NoError(t, err)
		if identify {
			assert.Equal(t, step.Step.Step.Error, recs[1].Step.Step.Error)
			continue
		}
		assert.Equal(t, `writing "<external>/x": see <run>/a.dmg, ~/z, /Users/howardson`, recs[1].Step.Step.Error)
	}
}

func FuzzReadJournal(f *testing.F) {
	good := journalOf(f, sampleRecords()...)
	f.Add(good)
	f.Add(good[:len(good)-20])
	f.Add([]byte("{}\n{}\n"))
	f.Add([]byte(`{"schema":1,"seq":1,"at":"2026-05-01T12:00:00Z","kind":"run","run":{"id":"x","rounds":1}}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := readJournal(bytes.NewReader(data), "j")
		if err != nil {
			return
		}
		if len(j.warnings) == 0 && j.whole != int64(len(data)) {
			t.Fatalf("%d bytes read of %d without a torn line", j.whole, len(data))
		}
		for _, r := range j.records {
			if r.CaseStart != nil && checkNames(r.CaseStart.Container) != nil {
				t.Fatalf("hostile container %q came through", r.CaseStart.Container)
			}
		}
		res, err := Fold(j.records)
		if err != nil {
			return
		}
		b, err := res.MarshalIndent()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseResult("r", bytes.NewReader(b)); err != nil {
			t.Fatalf("folded result does not read back: %v", err)
		}
	})
}

// completed is v with empty lists for missing ones.
func completed[T any](t require.TestingT, v *T) *T {
	require.NoError(t, complete(v))
	return v
}

// parseJournal is the records of a journal and the warning about a torn last line.
func parseJournal(r io.Reader, name string) ([]Record, *Warning, error) {
	j, err := readJournal(r, name)
	for _, w := range j.warnings {
		if strings.Contains(w.Text, "incomplete") {
			return j.records, &w, err
		}
	}
	return j.records, nil, err
}
