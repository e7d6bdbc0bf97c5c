package hdiutil

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/workload"
)

// Every writable kind, plain and encrypted, through each tool that makes it:
// created, attached, written, detached, attached again, read, removed.
func TestLife(t *testing.T) {
	r := newRig(t, FakeConfig{})
	for _, test := range []struct {
		spec   engine.Spec
		file   string
		create string
	}{
		{spec("UDRW"), "UDRW.dmg", "hdiutil create -sectors 65536 -type UDIF -fs APFS -volname Bench -nospotlight -plist PLACE/UDRW.dmg"},
		{spec("RAW", by("hdiutil")), "RAW.dmg", "hdiutil create -sectors 65536 -type UDIF -fs APFS -volname Bench -nospotlight -plist PLACE/RAW.dmg"},
		{spec("UDSP", on("Journaled HFS+")), "UDSP.sparseimage", "hdiutil create -sectors 65536 -type SPARSE -fs 'Journaled HFS+' -volname Bench -nospotlight -plist PLACE/UDSP.sparseimage"},
		{spec("UDSB", encrypted("AES-128"), func(s *engine.Spec) { s.BandSize = 1 << 20 }), "UDSB.sparsebundle",
			"hdiutil create -sectors 65536 -type SPARSEBUNDLE -fs APFS -volname Bench -imagekey sparse-band-size=2048 -encryption AES-128 -stdinpass -nospotlight -plist PLACE/UDSB.sparsebundle"},
		{spec("UDRW", encrypted("AES-256"), on("ext4", "exFAT")), "UDRW2.dmg", "hdiutil create -sectors 65536 -type UDIF -fs ExFAT -volname Bench -encryption AES-256 -stdinpass -nospotlight -plist PLACE/UDRW2.dmg"},
		{spec("ASIF"), "ASIF.asif", "diskutil image create blank --format ASIF --size 33554432 --fs APFS --volumeName Bench PLACE/ASIF.asif"},
		{spec("ASIF", encrypted("AES-256")), "ASIF2.asif", "diskutil image create blank --encrypt --stdinpassphrase --format ASIF --size 33554432 --fs APFS --volumeName Bench PLACE/ASIF2.asif"},
		{spec("UDRW", by("diskutil")), "UDRW3.dmg", "diskutil image create blank --format RAW --size 33554432 --fs APFS --volumeName Bench PLACE/UDRW3.dmg"},
		{spec("UDSB", by("diskutil"), on("FAT32")), "UDSB2.sparsebundle", "diskutil image create blank --format UDSB --size 33554432 --fs MS-DOS --volumeName Bench PLACE/UDSB2.sparsebundle"},
	} {
		t.Run(test.file, func(t *testing.T) {
			name, _, _ := strings.Cut(test.file, ".")
			c := r.create(name, test.spec)
			assert.Equal(t, test.file, c.Name())
			verb := "create"
			if strings.HasPrefix(test.create, "diskutil") {
				verb = "image create blank"
			}
			assert.Equal(t, test.create, r.last(verb))
			assert.Equal(t, strings.SplitN(test.create, " ", 2)[0], c.Made().Backend)
			assert.EqualValues(t, 32<<20, c.Made().Size)
			told := c.TakeReport()
			assert.Empty(t, told.Warnings)
			assert.NotEmpty(t, told.Reported[strings.ReplaceAll(verb, " ", "_")+"_ns"])
			r.useTwice(c)
			id, err := c.Identity(t.Context())
			require.NoError(t, err)
			again, err := r.e.Open(t.Context(), r.dir, name, test.spec)
			require.NoError(t, err)
			same, err := again.Identity(t.Context())
			require.NoError(t, err)
			assert.Equal(t, id, same)
			require.NoError(t, c.Remove(t.Context()))
			_, err = os.Lstat(r.file(test.file))
			require.ErrorIs(t, err, fs.ErrNotExist)
			r.clean()
		})
	}
}

func (r *rig) useTwice(c *image) {
	t := r.t
	a := r.attach(c, engine.AttachOptions{})
	put(t, a.Volume(), "x")
	require.ErrorContains(t, c.Remove(t.Context()), "attached")
	told := a.TakeReport()
	assert.NotEmpty(t, told.Reported["device"])
	rep, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Empty(t, rep.Warnings)
	assert.NotEmpty(t, rep.Reported["detach_ns"])
	assert.Nil(t, a.Volume())
	_, err = a.Detach(t.Context(), true)
	require.NoError(t, err, "a second detach does nothing")
	require.NoError(t, c.Evict(t.Context()))

	a = r.attach(c, engine.AttachOptions{ReadOnly: true})
	there(t, a.Volume(), "x")
	_, err = a.Volume().Create("y", 1, workload.FileOptions{})
	require.Error(t, err)
	_, err = a.Detach(t.Context(), true)
	require.NoError(t, err)
}

func TestAttachArguments(t *testing.T) {
	r := newRig(t, FakeConfig{})
	c := r.create("x", spec("UDRW"))
	a := r.attach(c, engine.AttachOptions{NoMount: true, NoVerify: true})
	assert.Nil(t, a.Volume())
	assert.Equal(t, "hdiutil attach -plist -nobrowse -owners off -noverify -noautofsck -noautoopen -nomount PLACE/x.dmg", r.last("attach"))
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Equal(t, "hdiutil detach "+a.disk, r.last("detach"))
	a = r.attach(c, engine.AttachOptions{})
	assert.Equal(t, "hdiutil attach -plist -nobrowse -owners off -noverify -noautofsck -noautoopen -mountpoint WORK/mnt PLACE/x.dmg", r.last("attach"))
	assert.Equal(t, "GUID_partition_scheme", a.TakeReport().Reported["scheme"])
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	assert.Len(t, r.verbs("info"), 2, "one to begin with; none for a mounted volume, one for an image without a mount")
	d := r.create("y", spec("ASIF"))
	a = r.attach(d, engine.AttachOptions{ReadOnly: true})
	assert.Equal(t, "diskutil image attach --plist --readOnly --nobrowse --mountPoint WORK/mnt PLACE/y.asif", r.last("image attach"))
	_, err = a.Detach(t.Context(), false)
	require.NoError(t, err)
	r.clean()
}

// All read-only kinds, by converting, and back.
func TestConvert(t *testing.T) {
	r := newRig(t, FakeConfig{})
	plain := r.create("src", spec("UDRW"))
	locked := r.create("locked", spec("UDRW", encrypted("AES-256")))
	for format, ext := range map[string]string{"UDRO": ".dmg", "UDCO": ".dmg", "UDZO": ".dmg", "UDBZ": ".dmg", "ULFO": ".dmg", "ULMO": ".dmg", "UFBI": ".dmg", "UDTO": ".cdr", "UDSP": ".sparseimage", "UDSB": ".sparsebundle"} {
		c, err := plain.Convert(t.Context(), r.dir, "p-"+format, spec(format))
		require.NoError(t, err, format)
		assert.Equal(t, "p-"+format+ext, c.Name())
		assert.Equal(t, "hdiutil convert PLACE/src.dmg -format "+format+" -o PLACE/p-"+format+ext, r.last("convert"))
		a := r.attach(c, engine.AttachOptions{})
		if formatOf(format).ReadOnly {
			assert.Contains(t, r.last("attach"), "-readonly")
		}
		if formatOf(format).UDIF {
			assert.Contains(t, r.last("attach"), " -verify ")
		}
		_, err = a.Detach(t.Context(), false)
		require.NoError(t, err)
		rep, err := c.Check(t.Context(), engine.CheckOptions{What: "container"})
		require.NoError(t, err)
		assert.Empty(t, rep.Findings, format)
	}
	_, err := locked.Convert(t.Context(), r.dir, "both", spec("UDSB", encrypted("AES-128"), func(s *engine.Spec) { s.BandSize = 1 << 20 }))
	require.NoError(t, err)
	assert.Equal(t, "hdiutil convert PLACE/locked.dmg -format UDSB -o PLACE/both.sparsebundle -tgtimagekey sparse-band-size=2048 -encryption AES-128 -stdinpass", r.last("convert"))
	_, err = locked.Convert(t.Context(), r.dir, "open", spec("ULFO"))
	require.NoError(t, err)
	asif, err := plain.Convert(t.Context(), r.dir, "a", spec("ASIF", encrypted("AES-256")))
	require.NoError(t, err)
	assert.Equal(t, "diskutil image create from --encrypt --stdinpassphrase --format ASIF PLACE/src.dmg PLACE/a.asif", r.last("image create from"))
	_, err = asif.Convert(t.Context(), r.dir, "b", spec("UDZO"))
	require.NoError(t, err)
	assert.Equal(t, "diskutil image create from --stdinpassphrase --format UDZO PLACE/a.asif PLACE/b.dmg", r.last("image create from"))
	_, err = asif.Convert(t.Context(), r.dir, "c", spec("UDBZ"))
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	_, err = plain.Convert(t.Context(), r.dir, "b", spec("UDZO"))
	require.ErrorIs(t, err, fs.ErrExist)
	r.clean()
}

// diskutil of macOS 15 has no option for the file system: every image that it makes has APFS.
func TestDiskutilWithoutFileSystems(t *testing.T) {
	r := newRig(t, FakeConfig{NoASIF: true})
	a := r.attach(r.create("a", spec("UDSB", by("diskutil"), on("exFAT", "APFS"))), engine.AttachOptions{})
	assert.Equal(t, "diskutil image create blank --format UDSB --size 33554432 --volumeName Bench PLACE/a.sparsebundle", r.last("image create blank"))
	assert.Equal(t, "APFS", a.c.Made().Filesystem)
	_, err := a.Detach(t.Context(), false)
	require.NoError(t, err)
	_, err = r.e.Create(t.Context(), r.dir, "b", spec("UDRW", by("diskutil"), on("none")))
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
	r.clean()
}

func TestSupports(t *testing.T) {
	r := newRig(t, FakeConfig{})
	old := newRig(t, FakeConfig{NoASIF: true})
	none := newRig(t, FakeConfig{NoImage: true})
	silent := newRig(t, FakeConfig{NoHelp: true})
	brief := newRig(t, FakeConfig{Brief: true})
	sequoia := newRig(t, FakeConfig{Brief: true, NoASIF: true}, func(o *Options) { o.System = "macOS 15.7" })
	few := newRig(t, FakeConfig{Types: []string{"UDIF", "SPARSEBUNDLE"}, Names: []string{"APFS", "ExFAT"}, Formats: []string{"UDRW", "UDZO"}})
	alike := newRig(t, FakeConfig{Vendor: "dmgbench"}, func(o *Options) { o.System = "" })
	ok := ""
	for _, test := range []struct {
		r    *rig
		spec engine.Spec
		want string
	}{
		{r, spec("UDRW"), ok}, {r, spec("ASIF"), ok}, {r, spec("UDSP", on("Case-sensitive HFS+")), ok}, {r, spec("UDRW", on("none")), ok},
		{r, spec("UDRW", on("case-sensitive apfs")), ok}, {r, spec("UDSB", encrypted("AES-128")), ok},
		{r, spec("ASIF", by("hdiutil")), "hdiutil (Apple, macOS 26.4) does not support format ASIF"},
		{r, spec("ASIF", encrypted("AES-128")), "diskutil (Apple, macOS 26.4) does not support encryption AES-128"},
		{r, spec("ASIF", on("HFS+")), "diskutil (Apple, macOS 26.4) does not support file system HFS+"},
		{r, spec("UDSP", by("diskutil")), "diskutil (Apple, macOS 26.4) does not support format UDSP"},
		{r, spec("UDSB", by("diskutil"), func(s *engine.Spec) { s.BandSize = 8 << 20 }), "diskutil (Apple, macOS 26.4) does not support a band size of one's own"},
		{r, spec("UDRW", on("ext4")), "hdiutil (Apple, macOS 26.4) does not support file system ext4"},
		{r, spec("UDZO"), "hdiutil (Apple, macOS 26.4) does not support making an empty UDZO image"},
		{r, spec("QCOW"), "hdiutil (Apple, macOS 26.4) does not support format QCOW"},
		{r, spec("UDRW", by("loop")), "hdiutil (Apple, macOS 26.4) does not support backend loop"},
		{r, spec("UDRW", encrypted("ROT13")), "hdiutil (Apple, macOS 26.4) does not support encryption ROT13"},
		{old, spec("ASIF"), "diskutil (Apple, macOS 26.4) does not support format ASIF"}, {old, spec("UDRW", by("diskutil")), ok},
		{old, spec("UDRW", by("diskutil"), on("exFAT")), "diskutil (Apple, macOS 26.4) does not support file system exFAT"},
		{none, spec("UDRW", by("diskutil")), "hdiutil (Apple, macOS 26.4) does not support backend diskutil"}, {none, spec("UDRW"), ok},
		{silent, spec("UDSP"), ok}, {silent, spec("UDRW", on("ext4")), "hdiutil (Apple, macOS 26.4) does not support file system ext4"},
		{silent, spec("ASIF"), "hdiutil (Apple, macOS 26.4) does not support backend diskutil"},
		{brief, spec("ASIF"), ok}, {brief, spec("UDSB", by("diskutil"), on("exFAT")), ok}, {brief, spec("UDSP", by("diskutil")), "diskutil (Apple, macOS 26.4) does not support format UDSP"},
		{sequoia, spec("UDSB", by("diskutil")), ok}, {sequoia, spec("ASIF"), "diskutil (Apple, macOS 15.7) does not support format ASIF"},
		{sequoia, spec("UDRW", by("diskutil"), on("exFAT")), "diskutil (Apple, macOS 15.7) does not support file system exFAT"},
		{alike, spec("UDRW", on("APFS", "ext4")), ok}, {alike, spec("UDSB", on("XFS")), ok}, {alike, spec("UDRW", on()), ok},
		{few, spec("UDSB", on("exFAT")), ok}, {few, spec("UDSP"), "hdiutil (Apple, macOS 26.4) does not support format UDSP"},
		{few, spec("UDRW", on("HFS+")), "hdiutil (Apple, macOS 26.4) does not support file system HFS+"},
		{alike, spec("UDRW"), "hdiutil (dmgbench work-alike) does not support file system APFS"},
	} {
		err := test.r.e.Supports(test.spec)
		if test.want == ok {
			assert.NoError(t, err, "%+v", test.spec)
			continue
		}
		var no *engine.UnsupportedError
		require.ErrorAs(t, err, &no, test.want)
		assert.Equal(t, test.want, err.Error())
		assert.NotEmpty(t, no.Hint, "%s: what to do about it", test.want)
		_, err = test.r.e.Create(t.Context(), test.r.dir, "no", test.spec)
		require.ErrorAs(t, err, &no)
	}
	assert.Contains(t, engine.Advised(sequoia.e.Supports(spec("ASIF"))), "macOS 26 or later makes it")
	created := brief.create("real", spec("ASIF"))
	assert.Contains(t, brief.last("image create blank"), "--format ASIF")
	assert.Equal(t, "ASIF", created.format.Name)
	assert.Equal(t, engine.Info{Name: "hdiutil", Vendor: "Apple", Version: "macOS 26.4 (DiskImages 683.100.3)", Title: "hdiutil (Apple, macOS 26.4)"}, r.e.Info())
	assert.Equal(t, "hdiutil (dmgbench work-alike)", alike.e.Info().Title)
	c := alike.create("x", spec("UDRW", on("APFS", "ext4")))
	assert.Equal(t, "ext4", c.Made().Filesystem)
	assert.Equal(t, []string{"dmgbench hdiutil attach '/p/a'\\''b.dmg'"}, c.OpenWith("/p/a'b.dmg"))
	x := alike.create("exfat", spec("UDRW", on("exFAT")))
	assert.Equal(t, []string{"dmgbench hdiutil attach /p/c.dmg", "dmgbench hdiutil ls /p/c.dmg"}, x.OpenWith("/p/c.dmg"))
}

func TestMissingTools(t *testing.T) {
	nothing := filepath.Join(t.TempDir(), "hdiutil")
	_, err := tryRig(t, FakeConfig{}, func(o *Options) { o.Hdiutil, o.Diskutil = []string{nothing}, nil })
	require.ErrorContains(t, err, "the program is missing")
	require.Equal(t, Missing, classOf(err))
	r := newRig(t, FakeConfig{}, func(o *Options) { o.Hdiutil = nil; o.Vendor = "Apple" })
	require.NoError(t, r.e.Supports(spec("UDRW")))
	require.Error(t, r.e.Supports(spec("UDSP")))
	c := r.create("x", spec("UDRW"))
	assert.Equal(t, "diskutil", c.Made().Backend)
	_, err = c.Compact(t.Context(), engine.CompactOptions{})
	require.ErrorAs(t, err, new(*engine.UnsupportedError))
}

func TestActions(t *testing.T) {
	r := newRig(t, FakeConfig{})
	c := r.create("x", spec("UDSB", encrypted("AES-256")))
	u, err := c.Usage(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, u.Bands)
	assert.EqualValues(t, 8<<20, c.Made().BandSize)
	rep, err := c.Compact(t.Context(), engine.CompactOptions{AllowBattery: true})
	require.NoError(t, err)
	assert.Equal(t, "hdiutil compact -batteryallowed -stdinpass PLACE/x.sparsebundle", r.last("compact"))
	assert.EqualValues(t, 1<<20, rep.Freed, "from the blocks of the host")
	assert.Contains(t, rep.Reported["compact_output"], "Reclaimed 1 MB out of 1023.6 GB possible.")
	rep, err = c.Resize(t.Context(), 64<<20)
	require.NoError(t, err)
	assert.Equal(t, "hdiutil resize -sectors 131072 -stdinpass PLACE/x.sparsebundle", r.last("resize"))
	assert.Empty(t, rep.Warnings)
	assert.EqualValues(t, 64<<20, c.Made().Size)
	rep, err = c.Check(t.Context(), engine.CheckOptions{What: "container"})
	require.NoError(t, err)
	assert.Empty(t, rep.Findings)

	h := r.create("h", spec("UDRW", on("HFS+")))
	_, err = h.Resize(t.Context(), 48<<20)
	require.NoError(t, err)
	assert.Equal(t, "hdiutil resize -sectors 98304 PLACE/h.dmg", r.last("resize"))
	f := r.create("f", spec("UDRW", on("FAT32")))
	_, err = f.Resize(t.Context(), 48<<20)
	require.NoError(t, err)
	assert.Empty(t, r.verbs("image resize"))
	_, err = h.Compact(t.Context(), engine.CompactOptions{})
	require.ErrorAs(t, err, new(*engine.UnsupportedError))

	rep, err = c.Check(t.Context(), engine.CheckOptions{What: "volume"})
	require.NoError(t, err)
	assert.Empty(t, rep.Findings)
	assert.Contains(t, r.last("attach"), "-readonly -nomount")
	assert.Len(t, r.verbs("verifyVolume"), 1)
	_, err = c.Check(t.Context(), engine.CheckOptions{Repair: true})
	require.NoError(t, err)
	assert.Len(t, r.verbs("repairVolume"), 1)

	twin, err := c.Transfer(t.Context(), r.dir, "twin")
	require.NoError(t, err)
	r.useTwice(twin.(*image))
	require.NoError(t, twin.Damage(t.Context(), engine.Damage{Kind: "header"}))
	_, err = twin.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, ErrNotImage)
	r.clean()
}

func TestDamage(t *testing.T) {
	r := newRig(t, FakeConfig{})
	raw := r.create("raw", spec("UDRW"))
	for _, kind := range []string{"header", "truncated"} {
		c, err := raw.Transfer(t.Context(), r.dir, kind)
		require.NoError(t, err)
		require.NoError(t, c.Damage(t.Context(), engine.Damage{Kind: kind}), kind)
		rep, err := c.Check(t.Context(), engine.CheckOptions{What: "container"})
		require.NoError(t, err)
		assert.NotEmpty(t, rep.Findings, kind)
	}
	fixed, err := raw.Convert(t.Context(), r.dir, "fixed", spec("UDZO"))
	require.NoError(t, err)
	require.NoError(t, fixed.Damage(t.Context(), engine.Damage{Kind: "header"}))
	_, err = r.e.Open(t.Context(), r.dir, "fixed", spec("UDZO"))
	require.Error(t, err, "the trailer is gone")
	bundle := r.create("b", spec("UDSB"))
	require.NoError(t, bundle.Damage(t.Context(), engine.Damage{Kind: "band-missing"}))
	require.ErrorAs(t, raw.Damage(t.Context(), engine.Damage{Kind: "band-missing"}), new(*engine.UnsupportedError))
	require.ErrorAs(t, raw.Damage(t.Context(), engine.Damage{Kind: "hammer"}), new(*engine.UnsupportedError))
	require.NoError(t, bundle.Damage(t.Context(), engine.Damage{Kind: "table"}))
	require.Error(t, bundle.Damage(t.Context(), engine.Damage{Kind: "volume"}), "no table is left")
	r.clean()
}

// What took the container's place is not touched.
func TestReplaced(t *testing.T) {
	r := newRig(t, FakeConfig{})
	c := r.create("x", spec("UDRW"))
	require.NoError(t, os.Rename(r.file("x.dmg"), r.file("old.dmg")))
	_, err := c.Attach(t.Context(), engine.AttachOptions{})
	require.ErrorIs(t, err, engine.ErrGone)
	require.NoError(t, os.WriteFile(r.file("x.dmg"), []byte("foreign"), 0o600))
	require.ErrorIs(t, c.Remove(t.Context()), engine.ErrGone)
	_, err = c.Resize(t.Context(), 64<<20)
	require.ErrorIs(t, err, engine.ErrGone)
	require.FileExists(t, r.file("x.dmg"))
	_, err = r.e.Create(t.Context(), r.dir, "x", spec("UDRW"))
	require.ErrorIs(t, err, fs.ErrExist)
	require.FileExists(t, r.file("x.dmg"))
}

func TestDeadlinesGrow(t *testing.T) {
	assert.Equal(t, time.Minute, deadlineOf("info", 0))
	assert.Greater(t, deadlineOf("create", 100<<30), time.Hour)
	assert.Greater(t, deadlineOf("compact", 0), deadlineOf("detach", 0))
}

func TestEngineProbe(t *testing.T) {
	r := newRig(t, FakeConfig{})
	require.NoError(t, engine.Probe(t.Context(), r.e, r.dir))
	r.clean()
}

// What the machine lacks is said with what to do about it.
func TestSupportsSaysWhatToDo(t *testing.T) {
	r := newRig(t, FakeConfig{Vendor: "dmgbench", Types: []string{"UDIF", "SPARSEBUNDLE"}, Names: []string{"ext4", "ExFAT"}, Formats: []string{"UDZO"}},
		func(o *Options) { o.System = "" })
	r.e.host.MissingFor = func(name string) string { return map[string]string{"XFS": "install xfsprogs", "btrfs": "none"}[name] }
	r.e.host.MissingForFUSE = func() string { return "load the module fuse" }
	require.NoError(t, r.e.probe(t.Context()))
	require.NoError(t, r.e.Supports(spec("UDRW", on("ext4"))))
	for _, test := range []struct {
		spec engine.Spec
		hint string
	}{
		{spec("UDRW", on("XFS")), "; for XFS: install xfsprogs"},
		{spec("UDSB", on("ext4")), "; hint: load the module fuse"},
		{spec("UDRW", on("ext4"), encrypted("AES-256")), "; hint: load the module fuse"},
		{spec("ASIF", on("ext4"), encrypted("AES-256")), ""},
	} {
		assert.Contains(t, engine.Advised(r.e.Supports(test.spec)), test.hint)
	}
}

func TestAdviceStandsInTheTextOnce(t *testing.T) {
	no := &engine.UnsupportedError{Engine: "e", What: "x", Hint: "use y"}
	assert.Equal(t, "doing it: e does not support x; hint: use y", engine.Advised(fmt.Errorf("doing it: %w", no)))
	assert.Equal(t, "use y instead: e does not support x", engine.Advised(fmt.Errorf("use y instead: %w", no)))
	assert.Equal(t, "plain", engine.Advised(errors.New("plain")))
	assert.Equal(t, "e does not support x", engine.Advised(&engine.UnsupportedError{Engine: "e", What: "x"}))
	assert.Contains(t, engine.Advised(&ToolError{Doing: "attaching", Object: "x", Class: Unknown, Hint: "wait"}), "; hint: wait")
}
