package enginetest

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
)

// transfer copies the container byte for byte; both live on by themselves.
func (r *rig) transfer() {
	t := r.t
	c := r.create("img")
	list, more := batch(1, odd...), batch(2, odd[:10]...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	digest := r.digest(c)
	twin, err := c.Transfer(r.ctx, r.dir, "twin")
	r.can(err)
	r.discard(twin)
	assert.Equal(t, digest, r.digest(twin))
	one, err := c.Identity(r.ctx)
	require.NoError(t, err)
	two, err := twin.Identity(r.ctx)
	require.NoError(t, err)
	assert.NotEqual(t, one, two)
	assert.LessOrEqual(t, r.usage(twin).Allocated, r.usage(c).Allocated+mib, "holes stay holes")
	r.with(twin, func(v workload.Volume) { r.write(v, more, workload.CacheBuffered) })
	assert.Equal(t, digest, r.digest(c), "writing to the copy changed the original")
	r.holds(twin, append(list, more...))
	r.holds(c, list)
	_, err = c.Transfer(r.ctx, r.dir, "twin")
	require.Error(t, err, "over a copy that is there")
}

// convert makes the other formats of the container. Read-only ones refuse to be written to.
func (r *rig) convert() {
	c := r.create("img")
	list := batch(1, odd...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	digest := r.digest(c)
	if len(r.o.Convert) == 0 {
		_, err := c.Convert(r.ctx, r.dir, "other", r.s)
		r.can(err)
		r.t.Skip("no format was named to convert to")
	}
	done := 0
	for _, format := range r.o.Convert {
		s := r.s
		s.Format, s.BandSize = format, 0
		other, err := c.Convert(r.ctx, r.dir, "other-"+format, s)
		if no, ok := errors.AsType[*engine.UnsupportedError](err); ok {
			r.t.Logf("not converted: %v", no)
			continue
		}
		require.NoError(r.t, err, format)
		r.discard(other)
		r.holds(other, list)
		r.sound(other)
		if sealed[format] {
			r.unchangeable(other)
		}
		require.NoError(r.t, other.Remove(r.ctx))
		done++
	}
	assert.Equal(r.t, digest, r.digest(c), "converting changed the original")
	if done == 0 {
		r.t.Skipf("%s converts to none of %v", r.e.Info().Title, r.o.Convert)
	}
}

// sealed are the formats that nothing changes.
var sealed = map[string]bool{"UDRO": true, "UDCO": true, "UDZO": true, "UDBZ": true, "ULFO": true, "ULMO": true, "UFBI": true, "UDTO": true}

// unchangeable tries to write to a read-only container in every way.
func (r *rig) unchangeable(c engine.Container) {
	t := r.t
	digest := r.digest(c)
	a := r.attach(c, engine.AttachOptions{NoVerify: true})
	assert.Error(t, a.Volume().Mkdir("new"))
	_, err := a.Volume().Create("new.bin", 1, workload.FileOptions{})
	assert.Error(t, err)
	r.detach(a)
	_, err = c.Resize(r.ctx, 2*r.s.Size)
	assert.ErrorAs(t, err, new(*engine.UnsupportedError), "resizing")
	_, err = c.Compact(r.ctx, engine.CompactOptions{AllowBattery: true})
	assert.ErrorAs(t, err, new(*engine.UnsupportedError), "compacting")
	assert.Equal(t, digest, r.digest(c))
}

// swapped puts another container under the name: nobody attaches or removes that by mistake.
func (r *rig) swapped() {
	t := r.t
	c, foreign := r.create("img"), r.create("foreign")
	list := batch(1, odd[:10]...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	path := func(name string) string { return filepath.Join(r.dir.Path(), name) }
	id, err := c.Identity(r.ctx)
	require.NoError(t, err)
	require.NoError(t, os.Rename(path(c.Name()), path("aside")))
	_, err = c.Attach(r.ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone, "nothing is there")
	require.NoError(t, os.Rename(path(foreign.Name()), path(c.Name())))
	other, err := c.Identity(r.ctx)
	require.NoError(t, err)
	assert.NotEqual(t, id, other)
	digest := r.digest(c)
	_, err = c.Attach(r.ctx, engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone)
	_, err = c.Usage(r.ctx)
	if !r.folder() {
		require.ErrorIs(t, err, engine.ErrGone)
	}
	require.ErrorIs(t, c.Remove(r.ctx), engine.ErrGone)
	assert.Equal(t, digest, r.digest(c), "somebody else's container was touched")
	require.NoError(t, os.Rename(path(c.Name()), path(foreign.Name())))
	require.NoError(t, os.Rename(path("aside"), path(c.Name())))
	r.holds(c, list)
}

// damage harms copies. A volume whose start is gone is noticed; whatever is
// harmed, nothing stays attached and the original is well.
func (r *rig) damage() {
	t := r.t
	c := r.create("img")
	list := batch(1, odd...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	done := 0
	for _, kind := range []string{"volume", "header", "table", "band-missing", "truncated", "tail", "flipped"} {
		twin, err := c.Transfer(r.ctx, r.dir, "harmed-"+kind)
		r.can(err)
		r.discard(twin)
		if err := twin.Damage(r.ctx, engine.Damage{Kind: kind, Bytes: 9, Draw: rand.Int64N}); err != nil {
			require.ErrorAs(t, err, new(*engine.UnsupportedError), kind)
			t.Logf("not harmed: %v", err)
			continue
		}
		done++
		noticed := r.notices(twin, list)
		if kind == "volume" {
			assert.NotEmpty(t, noticed, "nobody notices a volume without a start")
		}
		t.Logf("%s: %v", kind, noticed)
		require.NoError(t, twin.Remove(r.ctx), kind)
	}
	r.holds(c, list)
	r.sound(c)
	if done == 0 {
		t.Skipf("%s harms nothing", r.e.Info().Title)
	}
}

// notices are the ways in which the engine tells that something is wrong: by check, by attaching, by the bytes.
func (r *rig) notices(c engine.Container, list []workload.Item) (how []string) {
	for _, what := range []string{"container", "volume"} {
		rep, err := c.Check(r.ctx, engine.CheckOptions{What: what})
		if err != nil || len(rep.Findings) > 0 {
			how = append(how, "check "+what)
		}
	}
	a, err := c.Attach(r.ctx, engine.AttachOptions{})
	if err != nil {
		return append(how, "attach")
	}
	out, err := workload.Verify(r.ctx, a.Volume(), list, r.work(workload.CacheBuffered))
	if err != nil || len(out.Findings) > 0 {
		how = append(how, "bytes")
	}
	if _, err := a.Detach(r.ctx, false); err != nil {
		_, err = a.Detach(r.ctx, true)
		require.NoError(r.t, err)
	}
	return how
}

// encryption attaches with the right passphrase only, and no byte of a file is on the host in the clear.
func (r *rig) encryption() {
	t := r.t
	if r.s.Encryption == "" || r.s.Encryption == "none" {
		r.s.Encryption = "AES-256"
	}
	r.s.Passphrase = []byte("correct horse battery staple")
	c := r.create("img")
	list := batch(1, odd...)
	r.with(c, func(v workload.Volume) { r.write(v, list, workload.CacheBuffered) })
	plain := make([]byte, 64)
	r.work("").Data.FillAt(plain, workload.KeyOf(list[12].Name), 0)
	assert.False(t, r.contains(c, plain), "a file lies on the host in the clear")
	wrong := r.s
	wrong.Passphrase = []byte("wrong")
	if other, err := r.e.Open(r.ctx, r.dir, c.Name(), wrong); err == nil {
		_, err = other.Attach(r.ctx, engine.AttachOptions{})
		require.Error(t, err, "the wrong passphrase opens it")
	}
	r.holds(c, list)
}

// contains says whether any file of the container has the bytes.
func (r *rig) contains(c engine.Container, what []byte) bool {
	r.t.Helper()
	found := false
	err := filepath.WalkDir(filepath.Join(r.dir.Path(), c.Name()), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || found {
			return err
		}
		data, err := os.ReadFile(path)
		found = bytes.Contains(data, what)
		return err
	})
	require.NoError(r.t, err)
	return found
}
