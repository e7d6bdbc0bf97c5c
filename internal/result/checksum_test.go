package result

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var checksumOf = regexp.MustCompile(`,"crc32c":"[0-9a-f]{8}"`)

// withoutChecksums is a journal as older versions wrote it.
func withoutChecksums(journal string) string { return checksumOf.ReplaceAllString(journal, "") }

func TestChecksumNoticesEveryFlippedBit(t *testing.T) {
	good := journalOf(t, sampleRecords()...)
	rnd := rand.New(rand.NewPCG(28, 1))
	for range 400 {
		bad := bytes.Clone(good)
		at, bit := rnd.IntN(len(bad)), rnd.IntN(8)
		bad[at] ^= 1 << bit
		_, torn, err := parseJournal(bytes.NewReader(bad), JournalFile)
		if torn != nil && err == nil { // the last line can be damaged by a crash, and is left out
			require.Greater(t, at, bytes.LastIndexByte(good[:len(good)-1], '\n'))
			continue
		}
		e, ok := errors.AsType[*Error](err)
		require.True(t, ok, "bit %d of byte %d: %q -> %q", bit, at, good[at], bad[at])
		require.Positive(t, e.Line)
	}
}

// Every single bit of the first, of a middle and of the last line, checksums included; by default every third bit.
func TestChecksumNoticesEachBitOfALine(t *testing.T) {
	good := journalOf(t, sampleRecords()[:3]...)
	step := 3
	if long {
		step = 1
	}
	for at := range good {
		for bit := at % step; bit < 8; bit += step {
			good[at] ^= 1 << bit
			_, torn, err := parseJournal(bytes.NewReader(good), JournalFile)
			require.True(t, err != nil || torn != nil, "bit %d of byte %d", bit, at)
			good[at] ^= 1 << bit
		}
	}
}

// A journal of an older version gives the same records, and it is said that nothing guards them.
func TestJournalWithoutChecksums(t *testing.T) {
	good := string(journalOf(t, sampleRecords()...))
	want, err := readJournal(strings.NewReader(good), JournalFile)
	require.NoError(t, err)
	assert.Empty(t, want.warnings)

	old := withoutChecksums(good)
	require.NotContains(t, old, "crc32c")
	got, err := readJournal(strings.NewReader(old), JournalFile)
	require.NoError(t, err)
	assert.Equal(t, want.records, got.records)
	assert.Contains(t, got.warnings[0].Text, "13 of 13 records in the journal have no checksum")

	lines := strings.SplitAfter(good, "\n") // an old run that this version resumed
	got, err = readJournal(strings.NewReader(withoutChecksums(strings.Join(lines[:4], ""))+strings.Join(lines[4:], "")), JournalFile)
	require.NoError(t, err)
	assert.Contains(t, got.warnings[0].Text, "4 of 13 records")

	_, _, err = parseJournal(strings.NewReader(strings.Join(lines[:4], "")+withoutChecksums(strings.Join(lines[4:], ""))), JournalFile)
	require.ErrorContains(t, err, "line 5: the line has no checksum")
}

func TestRunFolderTellsOfMissingChecksums(t *testing.T) {
	d, err := OpenRun(newRun(t, sampleRecords()...))
	require.NoError(t, err)
	defer d.Close()
	_, err = d.Journal()
	require.NoError(t, err)
	require.Empty(t, d.Warnings())
	text, err := d.ReadFile(JournalFile, math.MaxInt32)
	require.NoError(t, err)
	require.NoError(t, d.dir.WriteFileAtomic(JournalFile, []byte(withoutChecksums(string(text))), 0o644))
	for range 2 {
		_, err = d.Journal()
		require.NoError(t, err)
		require.Len(t, d.Warnings(), 1)
		require.Equal(t, "journal", d.Warnings()[0].Kind)
	}
}

// In a journal without checksums damage is found as far as records contradict themselves.
func TestReaderRefusesContradictions(t *testing.T) {
	recs := sampleRecords()
	recs[5].Step.Step.Samples = append(recs[5].Step.Step.Samples, Sample{File: "f0002", Bytes: 4_000, StartNS: 1_000_000, DurationNS: 500})
	recs[5].Step.Step.Span = &Span{FirstDoneNS: 1_000_000, LastDoneNS: 1_000_500, Bytes: 2_004_000, BusyNS: 1_000_500, Waves: 2}
	good := withoutChecksums(string(journalOf(t, recs...)))
	for name, c := range map[string]struct{ old, new, want string }{
		"kind of a step":      {`"kind":"step",`, `"kind":"suep",`, `line 6: unknown kind of record "suep"`},
		"kind of a warning":   {`"kind":"warning"`, `"kind":"wasning"`, `line 10: unknown kind`},
		"key of a duration":   {`"start_ns":0,"duration_ns":1000000,"worker"`, `"start_ns":0,"dusation_ns":1000000,"worker"`, "line 6: step record: samples have 2004000 bytes and take 500 ns"},
		"negative sample":     {`"duration_ns":500`, `"duration_ns":-500`, "line 6: step record: sample 2 has"},
		"negative step":       {`"duration_ns":1001000`, `"duration_ns":-1001000`, "line 6: step record: sample 1 has"},
		"sample too long":     {`"duration_ns":1000000,"worker"`, `"duration_ns":10000000,"worker"`, "takes 10000000 ns, its step 1001000 ns"},
		"sample a little off": {`"duration_ns":500`, `"duration_ns":501`, "line 6: step record: samples have 2004000 bytes and take 1000501 ns"},
		"other bytes":         {`"bytes":4000`, `"bytes":4001`, "line 6: step record: samples have 2004001 bytes"},
		"span backwards":      {`"last_done_ns":1000500`, `"last_done_ns":900`, "line 6: step record: span from"},
		"span too long":       {`"last_done_ns":1000500`, `"last_done_ns":1900500`, "line 6: step record: span takes"},
		"span lost":           {`"span":`, `"sqan":`, "line 6: step record: samples have 2004000 bytes and take 1000500 ns, their span 0"},
		"other end of a line": {`"case":"b","kind":"power","text":"on battery"}}`, `"case":"b","kind":"power","text":"on battery"},"crc":"x"}`, "line 10: the line ends neither"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, 1, strings.Count(good, c.old))
			_, _, err := parseJournal(strings.NewReader(strings.Replace(good, c.old, c.new, 1)), JournalFile)
			require.ErrorContains(t, err, c.want)
		})
	}
	failed := slices.Clone(recs)
	failed[5].Step.Step.Error, failed[5].Step.Step.Span.BusyNS = "no space left on device", 1_000_700
	_, _, err := parseJournal(bytes.NewReader(journalOf(t, failed...)), JournalFile)
	require.NoError(t, err, "the time of a file that failed is in the span alone")
}

// A journal whose line ends git has changed, all or some of them, has the same records, and is continued.
func TestLineEndsOfWindows(t *testing.T) {
	good := string(journalOf(t, sampleRecords()...))
	want, err := readJournal(strings.NewReader(good), JournalFile)
	require.NoError(t, err)
	for _, text := range []string{good, withoutChecksums(good)} {
		for _, n := range []int{1, -1} {
			j, err := readJournal(strings.NewReader(strings.Replace(text, "\n", "\r\n", n)), JournalFile)
			require.NoError(t, err)
			assert.Equal(t, want.records, j.records)
		}
	}
	damaged := strings.Replace(strings.ReplaceAll(good, "\n", "\r\n"), `"kind":"round"`, `"kind":"rounds"`, 1)
	_, err = readJournal(strings.NewReader(damaged), JournalFile)
	require.Error(t, err)

	dir := newRun(t, sampleRecords()[:5]...)
	text := strings.ReplaceAll(contentsOf(t, filepath.Join(dir, JournalFile)), "\n", "\r\n")
	write(t, dir, JournalFile, text+"torn")
	d, err := ResumeRun(dir)
	require.NoError(t, err)
	appendAll(t, d, sampleRecords()[5])
	require.NoError(t, d.Close())
	assert.True(t, strings.HasPrefix(contentsOf(t, filepath.Join(dir, JournalFile)), text), "no earlier line changes")
	d, err = OpenRun(dir)
	require.NoError(t, err)
	recs, err := d.Journal()
	require.NoError(t, err)
	assert.Len(t, recs, 6)
	require.NoError(t, d.Close())
}
