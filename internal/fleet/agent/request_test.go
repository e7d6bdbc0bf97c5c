package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
	"dmgbench/internal/result"
)

// hostile are changes of a good job, and why it is refused then.
var hostile = map[string]struct {
	change func(*fleet.Job)
	reason string
}{
	"another id":       {func(j *fleet.Job) { j.ID = "b" }, "id of the job"},
	"no plan":          {func(j *fleet.Job) { j.Text = "" }, "is missing"},
	"no TOML":          {func(j *fleet.Job) { j.Text = "\x00[[[[" }, "not in UTF-8"},
	"deep":             {func(j *fleet.Job) { j.Text = "a = " + strings.Repeat("[", 100000) }, "TOML"},
	"large":            {func(j *fleet.Job) { j.Text += strings.Repeat("#", fleet.MaxPlan) }, "bytes"},
	"path as name":     {func(j *fleet.Job) { j.Plan = "../../etc/passwd" }, "name of the plan"},
	"flag as name":     {func(j *fleet.Job) { j.Plan = "--keep" }, "name of the plan"},
	"no name":          {func(j *fleet.Job) { j.Plan = "" }, "name of the plan"},
	"too often":        {func(j *fleet.Job) { j.Every = 1 }, "every"},
	"negative":         {func(j *fleet.Job) { j.Every = -time.Hour }, "every"},
	"rounds":           {func(j *fleet.Job) { j.Options.Rounds = "3 --keep" }, "option rounds"},
	"rounds as flag":   {func(j *fleet.Job) { j.Options.Rounds = "--out=/etc" }, "option rounds"},
	"negative rounds":  {func(j *fleet.Job) { j.Options.Rounds = "-1" }, "option rounds"},
	"sets":             {func(j *fleet.Job) { j.Options.Sets = -1 }, "option sets"},
	"workers":          {func(j *fleet.Job) { j.Options.Workers = -1 }, "option workers"},
	"scale":            {func(j *fleet.Job) { j.Options.Scale = "NaN" }, "option scale"},
	"infinite scale":   {func(j *fleet.Job) { j.Options.Scale = "+Inf" }, "option scale"},
	"engine":           {func(j *fleet.Job) { j.Options.Engine = "/bin/sh" }, "option engine"},
	"precision":        {func(j *fleet.Job) { j.Options.Precision = "--on=/" }, "option precision"},
	"only with NUL":    {func(j *fleet.Job) { j.Options.Only = []string{"format=UD\x00SB"} }, "option only"},
	"place":            {func(j *fleet.Job) { j.Text += "[target]\nplace = [\"usb\", \"ssd\"]\n" }, ""},
	"two places":       {func(j *fleet.Job) { j.Text += "[matrix]\nplace = [\"usb\", \"ssd\"]\n" }, "no folder for place"},
	"input":            {func(j *fleet.Job) { j.Text += "[inputs.disk]\nabout = \"An image\"\n" }, "no file for input"},
	"command of place": {func(j *fleet.Job) { j.Text = toolPlan }, "agents execute no commands"},
	"manual": {func(j *fleet.Job) {
		j.Text += "[[manual]]\nname = \"vcpus\"\nvalues = [\"1\"]\ninstructions = \"Set {value}\"\n"
	}, "someone has to set"},
}

var toolPlan = strings.Replace(tinyPlan, "[run]", "[target]\nplace = \"usb\"\n[run]", 1) +
	"[[place]]\nname = \"usb\"\ninstructions = \"Mount it\"\ntool = \"sshfs\"\n"

func TestHostile(t *testing.T) {
	t.Parallel()
	s := newSite(t, smallLimits)
	c := s.config(fake(t, "never"))
	s.start(c)
	ids := map[string]string{}
	for name, h := range hostile {
		job := tinyJob("h" + strings.ReplaceAll(name, " ", ""))
		ids[name] = job.ID
		id := job.ID
		h.change(&job)
		data, err := json.Marshal(job)
		require.NoError(t, err)
		s.submitRaw(id, data)
	}
	for id, data := range map[string]string{"empty": "", "text": "hello", "list": "[]", "$x": `{"id":"$x"}`, "a/b": "{}", strings.Repeat("x", 300): "{}"} {
		ids["raw "+id] = id
		s.submitRaw(id, []byte(data))
	}
	for name, id := range ids {
		r := s.await(id, 0)
		assert.Equal(t, fleet.Refused, r.State, name)
		assert.Contains(t, r.Error, hostile[name].reason, name)
		assert.Empty(t, r.Run, name)
		s.awaitGone(id)
	}
	s.empty(c)
}

func TestFlags(t *testing.T) {
	c := Config{Places: map[string]string{"": "/d", "usb": "/u"}, Backing: map[string]string{"usb": "/b"}, Engine: "inprocess"}
	job := tinyJob("a")
	seed := uint64(0) // is a seed as any other
	job.Options = fleet.Options{Rounds: "auto", Sets: 2, Scale: "0.5", Seed: &seed, Workers: 3, Precision: "5%", Only: []string{"format=UDSB"}}
	check := func() request {
		data, err := json.Marshal(job)
		require.NoError(t, err)
		_, r, err := readRequest(c, "a", data)
		require.NoError(t, err)
		return r
	}
	r := check()
	assert.Equal(t, []string{"--on==/d"}, r.locations)
	assert.Equal(t, []string{"--rounds=auto", "--sets=2", "--scale=0.5", "--seed=0", "--workers=3", "--engine=inprocess",
		"--precision=5%", "--only=format=UDSB"}, r.options)
	job.Options = fleet.Options{}
	assert.Equal(t, []string{"--engine=inprocess"}, check().options)
	job.Text = strings.Replace(tinyPlan, "[run]", "[target]\nplace = \"usb\"\n[run]", 1)
	r = check()
	assert.Equal(t, []string{"--on=usb=/u", "--backing=usb=/b", "--on==/d"}, r.locations)
	delete(c.Places, "usb")
	r = check()
	assert.Equal(t, []string{"--on==/d"}, r.locations, "a single place may be the default")
}

// Cases count that have ended, also in a line that was being written, and no text of a long record.
func TestProgressOfAJournal(t *testing.T) {
	k := &task{dir: t.TempDir()}
	ended, started := k.progress()
	assert.Equal(t, []any{0, false}, []any{ended, started}, "no journal")
	require.NoError(t, os.MkdirAll(k.run(), 0o700))
	long := `{"kind":"step","text":"` + strings.Repeat("x", 64<<10) + `"kind":"case_end"` + strings.Repeat("x", 64<<10) + `"}`
	for _, c := range []struct {
		text    string
		ended   int
		started bool
	}{
		{`{"kind":"ru`, 0, false},
		{"{\"kind\":\"run\"}\n" + long + "\n", 0, true},
		{"{\"kind\":\"run\"}\n{\"kind\":\"case_end\"}\n" + long + "\n{\"kind\":\"case_end\"", 2, true},
	} {
		require.NoError(t, os.WriteFile(filepath.Join(k.run(), result.JournalFile), []byte(c.text), 0o600))
		ended, started = k.progress()
		assert.Equal(t, []any{c.ended, c.started}, []any{ended, started}, "%.40s", c.text)
	}
}

func TestOccurrence(t *testing.T) {
	for _, c := range []struct {
		every  time.Duration
		repeat int
		age    time.Duration
		want   int
	}{
		{0, 0, time.Hour, 0},
		{time.Hour, 0, time.Minute, 0},
		{time.Hour, 0, 150 * time.Minute, 2},
		{time.Hour, 3, 1000 * time.Hour, 2},
		{time.Hour, 0, -time.Hour, 0}, // the clock of the server jumped
	} {
		assert.Equal(t, c.want, occurrence(fleet.Job{Every: c.every, Repeat: c.repeat}, c.age), c)
	}
}
