package result

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// script writes records with few words.
type script struct{ recs []Record }

func (s *script) session(i int) *script {
	return s.add(Record{Session: &Session{Index: i}})
}
func (s *script) end(i int, how string) *script {
	return s.add(Record{SessionEnd: &SessionEnd{Session: i, End: how}})
}
func (s *script) begin(id string, round int) *script {
	return s.add(Record{CaseStart: &CaseStart{Case: id, Round: round, Target: Target{Format: id}}})
}
func (s *script) step(id string, round, index int) *script {
	return s.add(stepRecord(id, round, index))
}
func (s *script) stepStart(id string, round, index int) *script {
	return s.add(Record{StepStart: &StepStart{Case: id, Round: round, Index: index, Do: "read", Phase: "new"}})
}
func (s *script) finish(id string, round int, status, reason string) *script {
	return s.add(Record{CaseEnd: &CaseEnd{Case: id, Round: round, Status: status, Reason: reason}})
}
func (s *script) pause(id string, round, index int) *script {
	return s.add(Record{Pause: &Pause{Case: id, Round: round, Step: index}})
}
func (s *script) whole(id string, round int) *script {
	return s.begin(id, round).step(id, round, 0).step(id, round, 1).finish(id, round, Done, "")
}
func (s *script) add(r Record) *script { s.recs = append(s.recs, r); return s }

func begin(rounds int, cases ...string) *script {
	return (&script{recs: []Record{runRecord(rounds, cases...)}}).session(1)
}

func (s *script) read(t testing.TB) []Record {
	recs, _, err := parseJournal(bytes.NewReader(journalOf(t, s.recs...)), "j")
	require.NoError(t, err)
	return recs
}

// told is what a case became, in one line.
func told(c Case) string {
	text := c.ID + " " + c.Status
	if c.Reason != "" {
		text += " (" + c.Reason + ")"
	}
	for _, s := range c.Steps {
		text += fmt.Sprintf(" %d.%d", s.Round, s.Index)
	}
	return text
}

func TestFoldCases(t *testing.T) {
	for name, c := range map[string]struct {
		s    *script
		want []string
	}{
		"all done, shuffled": {begin(2, "a", "b").whole("b", 1).whole("a", 1).whole("a", 2).whole("b", 2),
			[]string{"a done 1.0 1.1 2.0 2.1", "b done 1.0 1.1 2.0 2.1"}},
		"killed and begun anew": {begin(1, "a").begin("a", 1).step("a", 1, 0).session(2).whole("a", 1),
			[]string{"a done 1.0 1.1"}},
		"killed in a step": {begin(1, "a", "b").whole("b", 1).begin("a", 1).step("a", 1, 0).stepStart("a", 1, 1),
			[]string{"a discarded (round 1: interrupted in step 1 (read new)) 1.0", "b done 1.0 1.1"}},
		"killed between steps": {begin(1, "a").begin("a", 1).step("a", 1, 0),
			[]string{"a discarded (round 1: interrupted between two steps) 1.0"}},
		"one round failed": {begin(2, "a").whole("a", 1).begin("a", 2).step("a", 2, 0).finish("a", 2, Failed, "disk full"),
			[]string{"a failed (round 2: disk full) 1.0 1.1 2.0"}},
		"all rounds failed": {begin(2, "a").finish("a", 1, Failed, "x").finish("a", 2, Failed, "x"),
			[]string{"a failed (rounds 1, 2: x)"}},
		"failed for two reasons": {begin(3, "a").finish("a", 1, Failed, "x").finish("a", 2, Failed, "y").finish("a", 3, Discarded, "z"),
			[]string{"a failed (round 1: x; round 2: y)"}},
		"skipped once for all": {begin(3, "a").finish("a", 1, Skipped, "no ASIF"), []string{"a skipped (no ASIF)"}},
		"skipped later":        {begin(2, "a").whole("a", 1).finish("a", 2, Skipped, "no space"), []string{"a discarded (round 2: no space) 1.0 1.1"}},
		"discarded":            {begin(2, "a").whole("a", 1).begin("a", 2).finish("a", 2, Discarded, "slept"), []string{"a discarded (round 2: slept) 1.0 1.1"}},
		"discarded, done again": {begin(1, "a").begin("a", 1).step("a", 1, 7).finish("a", 1, Discarded, "slept").whole("a", 1),
			[]string{"a done 1.0 1.1"}},
		"done, begun again by mistake": {begin(1, "a").whole("a", 1).begin("a", 1).step("a", 1, 7), []string{"a done 1.0 1.1"}},
		"done twice: the later counts": {begin(1, "a").whole("a", 1).begin("a", 1).step("a", 1, 7).finish("a", 1, Done, ""),
			[]string{"a done 1.7"}},
		"killed twice": {begin(1, "a").begin("a", 1).step("a", 1, 7).session(2).begin("a", 1).step("a", 1, 8),
			[]string{"a discarded (round 1: interrupted between two steps) 1.8"}},
		"not reached": {begin(2, "a", "b").whole("a", 1), []string{"a discarded (only 1 of 2 rounds were measured) 1.0 1.1", "b discarded (not reached yet)"}},
		"paused and gone on": {begin(1, "a").begin("a", 1).step("a", 1, 0).pause("a", 1, 1).end(1, Paused).session(2).step("a", 1, 1).finish("a", 1, Done, ""),
			[]string{"a done 1.0 1.1"}},
		"killed behind the pause": {begin(1, "a").begin("a", 1).step("a", 1, 0).pause("a", 1, 1).end(1, Paused).session(2).stepStart("a", 1, 1).session(3).whole("a", 1),
			[]string{"a done 1.0 1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			recs := c.s.read(t)
			r, err := Fold(recs)
			require.NoError(t, err)
			var got []string
			for _, cs := range r.Cases {
				got = append(got, told(cs))
			}
			assert.Equal(t, c.want, got)
			again, err := Fold(recs)
			require.NoError(t, err)
			assert.Equal(t, r, again)
		})
	}
}

func TestFoldRefuses(t *testing.T) {
	for want, s := range map[string]*script{
		`line 3: case "z" is not one of the run's`:                 begin(1, "a").begin("z", 1),
		`line 3: step of case "a", round 1, which was not started`: begin(1, "a").step("a", 1, 0),
		`line 4: step of case "b", round 1, which was not started`: begin(1, "a", "b").begin("a", 1).step("b", 1, 0),
		`line 5: step of case "a", round 1, which was not started`: begin(1, "a").begin("a", 1).session(2).step("a", 1, 0),
		`line 3: end of case "a", round 1, which was not started`:  begin(1, "a").finish("a", 1, Done, ""),
		`line 7: step of case "a", round 1, which was not started`: begin(1, "a").whole("a", 1).step("a", 1, 2),
		`line 3: session 1 follows session 1`:                      begin(1, "a").session(1),
		`line 3: case "<script>" is not one of the run's`:          begin(1, "a").finish("<script>", 1, Skipped, ""),
		`line 4: step of case "a", round 2, which was not started`: begin(2, "a").begin("a", 1).stepStart("a", 2, 0),
		`reading journal "journal.jsonl": the run was interrupted`: {recs: nil},
		`line 4: end of case "a", round 1, which was not started`:  begin(1, "a", "b").begin("b", 1).finish("a", 1, Done, ""),
		`folding the journal: reading journal "journal.jsonl" lin`: begin(1, "a").begin("z", 1),
	} {
		_, err := Fold(s.read(t))
		assert.ErrorContains(t, err, want)
	}
}

func TestFoldSessionsAndNotes(t *testing.T) {
	s := begin(1, "a").begin("a", 1)
	s.add(Record{Warning: &WarningRecord{Warning: Warning{"power", "on battery"}}})
	s.add(Record{Warning: &WarningRecord{Warning: Warning{"power", "on battery"}}})
	s.add(Record{Warning: &WarningRecord{Case: "a", Warning: Warning{"slow", "slow first file"}}})
	s.add(Record{Departure: &Departure{Kind: "engine", Text: "in-process"}})
	s.add(Record{Departure: &Departure{Kind: "engine", Text: "in-process"}})
	s.session(2).whole("a", 1)
	s.recs[len(s.recs)-1].CaseEnd.Target = &Target{Format: "UDSB", BandSizeUsed: 8 << 20}
	s.end(2, Clean).add(Record{RunEnd: &RunEnd{Status: Done}})
	recs := s.read(t)
	r, err := Fold(recs)
	require.NoError(t, err)
	assert.Equal(t, Done, r.Status)
	require.Len(t, r.Sessions, 2)
	assert.Equal(t, Lost, r.Sessions[0].End)
	assert.Equal(t, recs[7].At, r.Sessions[0].Finished, "the last sign of life")
	assert.Equal(t, Clean, r.Sessions[1].End)
	assert.Equal(t, []Warning{{"power", "on battery"}}, r.Warnings)
	assert.Equal(t, []Warning{{"slow", "slow first file"}}, r.Cases[0].Warnings)
	assert.Len(t, r.Departures, 1)
	assert.EqualValues(t, 8<<20, r.Cases[0].Target.BandSizeUsed)
	assert.True(t, r.Cases[0].Counts(1))
	assert.False(t, r.Cases[0].Counts(2))

	cut, err := Fold(recs[:len(recs)-2])
	require.NoError(t, err)
	assert.Equal(t, Unfinished, cut.Status)
	assert.Equal(t, Lost, cut.Sessions[1].End)
}

func TestReplayForResume(t *testing.T) {
	s := begin(2, "a", "b").whole("b", 1).begin("a", 1).step("a", 1, 0).pause("a", 1, 1)
	st, err := Replay(s.read(t))
	require.NoError(t, err)
	require.NotNil(t, st.Paused)
	assert.Equal(t, 1, st.Paused.Step)
	assert.NotNil(t, st.Final("b", 1).End)
	assert.Nil(t, st.Final("a", 1).End)
	assert.Nil(t, st.Final("b", 2))

	st, err = Replay(s.session(2).stepStart("a", 1, 1).read(t))
	require.NoError(t, err)
	assert.Nil(t, st.Paused, "it went on: the checkpoint is used up")
	assert.Equal(t, 1, st.Final("a", 1).Started.Index)

	st, err = Replay(s.step("a", 1, 1).finish("a", 1, Done, "").read(t))
	require.NoError(t, err)
	assert.NotNil(t, st.Final("a", 1).End)
}

// Kills at random moments, each followed by a resume that begins the open
// case-round anew: the cases come out as if nothing had happened.
func TestFoldAfterKills(t *testing.T) {
	calm := begin(3, "a", "b")
	for round := 1; round <= 3; round++ {
		calm.whole("a", round).whole("b", round)
	}
	want, err := Fold(calm.read(t))
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		s, session := begin(3, "a", "b"), 1
		for round := 1; round <= 3; round++ {
			for _, id := range rapid.Permutation([]string{"a", "b"}).Draw(rt, "order") {
				for range rapid.IntRange(0, 2).Draw(rt, "kills") {
					attempt := (&script{}).begin(id, round).stepStart(id, round, 0).step(id, round, 0).stepStart(id, round, 1)
					s.recs = append(s.recs, attempt.recs[:rapid.IntRange(0, 4).Draw(rt, "at")]...)
					session++
					s.session(session)
				}
				s.whole(id, round)
			}
		}
		got, err := Fold(s.read(t))
		require.NoError(rt, err)
		require.Equal(rt, want.Cases, got.Cases)
	})
}

func TestResultRoundTripRandom(t *testing.T) {
	dir := newRun(t, sampleRecords()...)
	rapid.Check(t, func(rt *rapid.T) {
		r := randomOf[Result](rt)
		r.Schema = SchemaVersion
		for i := range r.Cases {
			r.Cases[i].Status = Done
		}
		writeResult(rt, dir, &r)
		got, err := ReadResult(dir)
		require.NoError(rt, err)
		require.Equal(rt, &r, got)
		b, err := got.MarshalLine()
		require.NoError(rt, err)
		require.Equal(rt, contentsOf(t, filepath.Join(dir, ResultFile)), string(b))
	})
}

// Missing lists are [] in the file.
func TestMarshalHasNoNullLists(t *testing.T) {
	r := &Result{Schema: 1, Sessions: []Session{{}}, Cases: []Case{{Steps: []Step{{}}}}, Summaries: []Summary{{}},
		Fits: []Fit{{}}, Relations: []Relation{{}}, Claims: []Claim{{}}}
	b, err := r.MarshalIndent()
	require.NoError(t, err)
	assert.NotContains(t, string(b), "null")
	require.NoError(t, r.CheckFinite())
	r.Summaries[0].Estimates = []Estimate{{}, {Value: math.NaN()}}
	require.EqualError(t, r.CheckFinite(), "summaries[0].estimates[1].value is not a finite number")
	_, err = r.MarshalIndent()
	require.EqualError(t, err, "encoding the result: summaries[0].estimates[1].value is not a finite number")
	r.Summaries[0].Estimates[1] = Estimate{CI: &CI{High: math.Inf(1)}}
	_, err = r.MarshalIndent()
	require.ErrorContains(t, err, "summaries[0].estimates[1].ci.high")
	r.Summaries, r.Relations[0].Points = nil, []RelationPoint{{Y: math.NaN()}}
	_, err = r.MarshalIndent()
	require.ErrorContains(t, err, "relations[0].points[0].y")
}

func TestReadResultRefuses(t *testing.T) {
	dir := newRun(t, sampleRecords()...)
	_, err := ReadResult(dir)
	require.ErrorContains(t, err, "no such file")
	for text, want := range map[string]string{
		"":                              "unexpected end",
		"{\n\"schema\": 1,\n]":          "json\": invalid character ']'",
		"{\"schema\": 1}\nx":            "json\": invalid character 'x'",
		"{}":                            "schema 0, this program knows 1",
		"[]":                            "cannot unmarshal array",
		`{"schema": 2}`:                 "schema 2, this program knows 1",
		`{"schema": 1, "seed": -1}`:     "cannot unmarshal number -1",
		`{"schema":1,"cases":[{}]}`:     `cases[0]: status ""`,
		`{"schema":1,"rounds":1e400}`:   "cannot unmarshal number",
		"schema = 1\n":                  "invalid character",
		`{"schema":1,"cases":[{"id":3}`: "unexpected end",
	} {
		write(t, dir, ResultFile, text)
		_, err := ReadResult(dir)
		require.ErrorContains(t, err, want, "%q", text)
		_, err = ReadResult(filepath.Join(dir, ResultFile))
		require.ErrorContains(t, err, ResultFile)
	}
	write(t, dir, ResultFile, `{"schema":1,"new_in_2030":{"x":[1]},"cases":[{"id":"a","status":"done","more":2}]}`)
	r, err := ReadResult(dir)
	require.NoError(t, err, "additive changes are fine")
	require.Equal(t, "a", r.Cases[0].ID)
	require.NoError(t, os.Remove(filepath.Join(dir, ResultFile)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, ResultFile), 0o755))
	_, err = ReadResult(dir)
	require.ErrorContains(t, err, "not a regular file")
}

func FuzzParseResult(f *testing.F) {
	b, err := goldenResult().MarshalIndent()
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"schema":1,"cases":[{"status":"done","steps":[{"span":{}},{"stream":{"ratio":1e308}}]}]}`))
	f.Add([]byte(`{"schema":1,"sessions":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseResult("r", bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := r.MarshalIndent()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseResult("r", bytes.NewReader(again))
		if err != nil {
			t.Fatal(err)
		}
		if last, err := back.MarshalIndent(); err != nil || !bytes.Equal(last, again) {
			t.Fatalf("not stable: %v", err)
		}
	})
}
