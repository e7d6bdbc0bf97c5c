package hdiutil

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dmgbench/internal/bench/engine"
	"dmgbench/internal/bench/engine/hdiutil/command"
	diskimage "dmgbench/internal/image"
	"dmgbench/internal/image/container"
	"dmgbench/internal/image/container/files"
	"dmgbench/internal/image/gpt"
	"dmgbench/internal/system/hostio"
	"dmgbench/internal/system/units"
)

// image is one container in a place.
type image struct {
	engine.HostFile
	choice          // its size is that of the device, as far as is known
	path     string // absolute
	e        *Engine
	spec     engine.Spec // with a passphrase of its own if encrypted
	info     container.Description
	open     *attachment   // nil while detached
	left     bool          // a failed attach may have left it attached, or found it attached
	report   engine.Report // of the command that made it
	servedBy string        // at the last attach
	mount    string        // at the last attach, as a plan names it
	owners   string        // at the last attach, "" if not known
	// sizeBefore is that of the device before it was resized, until its volume is
	// mounted again; else 0.
	sizeBefore int64
}

var (
	_ engine.Container = (*image)(nil)
	_ engine.Reporter  = (*image)(nil)
)

// Create makes the image with its file system. It is not attached.
func (e *Engine) Create(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	c, err := e.choose(s)
	if err != nil {
		return nil, err
	}
	a := command.Args{Format: c.format.CreateType, Filesystem: c.fs.hdiutil, Size: c.size,
		Volume: c.fs.labelFor(s.VolumeName), NoSpotlight: e.can.noSpotlight && s.Mount != engine.MountFinder}
	line := "hdiutil create"
	if c.backend == backendDiskutil {
		line, a.Format, a.Filesystem = "diskutil image create blank", c.format.ImageType, c.fs.diskutil
		if !e.can.diskutilFS {
			if c.fs.name == none {
				return nil, e.refuse(c.backend, "images without a file system", "backend = \"hdiutil\"")
			}
			a.Filesystem = ""
		}
	}
	return e.makeImage(ctx, dir, name, s, c, call{doing: "creating"}, line, a)
}

// makeImage runs a command that makes a new image, and opens it. It adds file,
// band size and encryption of the spec to the arguments. A failed try leaves no file.
func (e *Engine) makeImage(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec, c choice, k call,
	line string, a command.Args) (engine.Container, error) {
	file := engine.FileName(name, c.format)
	s, err := s.WithPassphrase(e.o.Passphrase)
	if err == nil {
		if _, err = dir.Lstat(file); err == nil {
			err = fs.ErrExist
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s %q: %w", k.doing, file, err)
	}
	a.Target = filepath.Join(dir.Path(), file)
	if a.Image == "" {
		a.Image = a.Target
	}
	if c.format.Folder { // the tools choose the bands of sparse images
		a.Band = s.BandSize
	}
	if s.Encrypted() {
		a.Encryption, a.Secrets = s.Encryption, append(a.Secrets, s.Passphrase)
	}
	k.object, k.image, k.bytes, k.cmd = file, a.Target, c.size, command.New(line, a)
	// The file did not exist before: whatever has the name now, the tool made.
	k.undo = func() error { return dir.RemoveAll(file) }
	k.check = func([]byte) error {
		i, err := container.Describe(dir, file)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNoResult, err)
		}
		return checkMade(i, c.format, s.Encryption)
	}
	var t engine.Report
	err = e.run(ctx, &t, k)
	if classOf(err) == Exists { // another process made the file just now
		return nil, err
	}
	var i *image
	if err == nil {
		i, err = e.openImage(dir, file, s, c)
	}
	if err != nil {
		return nil, errors.Join(err, k.undo())
	}
	reportMade(&t, i.info, i.spec.BandSize)
	i.report = t
	return i, nil
}

// Convert makes another container of another format with the same content.
func (c *image) Convert(ctx context.Context, dir *hostio.Dir, name string, s engine.Spec) (engine.Container, error) {
	if err := c.CheckDetached(ctx, "converting"); err != nil {
		return nil, err
	}
	to, err := c.e.chooseTarget(c.choice, s)
	if err != nil {
		return nil, err
	}
	line, a := "hdiutil convert", command.Args{Format: to.format.Name, Image: c.path, Secrets: c.secrets()}
	if to.backend == backendDiskutil {
		line, a.Format = "diskutil image create from", to.format.ImageType
	}
	return c.e.makeImage(ctx, dir, name, s, to, call{doing: "converting"}, line, a)
}

// openImage inspects an image that exists.
func (e *Engine) openImage(dir *hostio.Dir, file string, s engine.Spec, c choice) (*image, error) {
	s, err := s.WithPassphrase(e.o.Passphrase)
	i := &image{e: e, spec: s, choice: c, path: filepath.Join(dir.Path(), file)}
	i.spec.Passphrase = slices.Clone(s.Passphrase) // Remove wipes it
	if err == nil {
		i.HostFile, err = engine.OpenHostFile(dir, file)
	}
	if err == nil {
		i.info, err = i.inspect()
	}
	if err == nil {
		err = checkMade(i.info, c.format, s.Encryption)
	}
	if err != nil {
		return nil, fmt.Errorf("opening %q: %w", file, err)
	}
	// Encrypted files and most read-only formats do not show the size: then it
	// is what was requested.
	i.size = cmp.Or(i.info.Size, i.size)
	if !c.format.Folder {
		i.spec.BandSize = 0
	}
	return i, nil
}

// asContainer turns a nil image into a nil interface.
func asContainer(i *image, err error) (engine.Container, error) {
	if err != nil {
		return nil, err
	}
	return i, nil
}

// secrets are the passphrases of a command about the image.
func (c *image) secrets() [][]byte { return [][]byte{c.spec.Passphrase} }

// command is a command about the image alone.
func (c *image) command(line string) command.Command {
	return command.New(line, command.Args{Image: c.path, Secrets: c.secrets()})
}

// Made is what was made, read back from the files.
func (c *image) Made() engine.Made {
	return engine.Made{Filesystem: c.fs.name, Size: c.size, BandSize: c.info.BandSize, Backend: c.backend,
		ServedBy: c.servedBy, Mount: c.mount, Owners: c.owners}
}

// TakeReport returns figures and messages of the tool, layout and retries of
// the command that made the image.
func (c *image) TakeReport() engine.Report { return c.report.Take() }

// Usage counts the files' blocks on the host, attached or not; the tools' own
// figures are not used.
func (c *image) Usage(ctx context.Context) (engine.Usage, error) {
	if err := c.CheckSame(ctx, "measuring"); err != nil {
		return engine.Usage{}, err
	}
	u, err := files.UsageOf(ctx, c.Dir, c.File, c.info.BandSize, c.size)
	if err != nil {
		err = fmt.Errorf("measuring %q: %w", c.File, engine.Gone(err))
	}
	return u, err
}

// Transfer copies the container and opens the copy.
func (c *image) Transfer(ctx context.Context, dir *hostio.Dir, name string) (engine.Container, error) {
	to := engine.FileName(name, c.format)
	if err := c.CopyTo(ctx, dir, to); err != nil {
		return nil, err
	}
	return asContainer(c.e.openImage(dir, to, c.spec, c.choice))
}

// Remove deletes the container, unless another one took its place, and wipes
// the passphrase.
func (c *image) Remove(ctx context.Context) error {
	if err := c.CheckDetached(ctx, "removing"); err != nil {
		return err
	}
	if c.left { // processes that use a volume without its files hang
		if _, still, err := c.findAttached(ctx, &engine.Report{}, ""); err != nil || still {
			return errors.Join(fmt.Errorf("removing %q: it is attached", c.File), err)
		}
	}
	if err := c.Dir.RemoveAll(c.File); err != nil {
		return err
	}
	clear(c.spec.Passphrase)
	return nil
}

// OpenWith are commands of the tool that made the image; it prompts for a
// passphrase.
func (c *image) OpenWith(path string) []string {
	path = engine.ShellQuote(path)
	line := map[string]string{backendHdiutil: "hdiutil attach ", backendDiskutil: "diskutil image attach "}[c.backend]
	if c.e.isApple() {
		return []string{line + path}
	}
	lines := []string{"dmgbench hdiutil " + strings.TrimPrefix(line, "hdiutil ") + path}
	if c.fs.name == "exFAT" { // which ls reads without mounting
		lines = append(lines, "dmgbench hdiutil ls "+path)
	}
	return lines
}

// measureFreed does what may free blocks of the host, and reports how many bytes
// it freed, whatever the tool prints.
func (c *image) measureFreed(ctx context.Context, t *engine.Report, do func() error) error {
	before, err := c.Usage(ctx)
	if err == nil {
		err = do()
	}
	if err != nil {
		return err
	}
	after, err := c.Usage(ctx)
	t.Freed = max(0, before.Allocated-after.Allocated)
	return err
}

// change runs a command that changes the container in place.
func (c *image) change(ctx context.Context, t *engine.Report, k call) error {
	return c.measureFreed(ctx, t, func() error {
		k.object, k.image = c.File, c.path
		if err := c.e.run(ctx, t, k); err != nil {
			return err
		}
		// The tool may have replaced files; the container was checked just before.
		return c.Renew()
	})
}

// prepare checks that an action may be done to the image now.
func (c *image) prepare(ctx context.Context, doing string, a engine.Action) error {
	if err := c.CheckDetached(ctx, doing); err != nil {
		return err
	}
	return c.e.allows(c.choice, a)
}

// Compact frees unused bands. hdiutil compacts bundles and sparse images with
// APFS or HFS+; with other file systems it frees none.
func (c *image) Compact(ctx context.Context, o engine.CompactOptions) (t engine.Report, err error) {
	if err := c.prepare(ctx, "compacting", engine.Action{Do: "compact"}); err != nil {
		return t, err
	}
	a := command.Args{Image: c.path, Secrets: c.secrets(), Battery: o.AllowBattery}
	err = c.change(ctx, &t, call{
		doing: "compacting", bytes: c.size, cmd: command.New("hdiutil compact", a),
		check: func(out []byte) error {
			t.Note("compact_output", command.ParseMessages(string(out)).Last())
			return nil
		},
	})
	return t, err
}

// Resize changes the length of device, partition and volume. The size of the
// volume is reported when it is mounted next. Where Apple's hdiutil refuses,
// whose manual page names HFS+ only, diskutil is asked.
func (c *image) Resize(ctx context.Context, size int64) (t engine.Report, err error) {
	if err := c.prepare(ctx, "resizing", engine.Action{Do: "resize"}); err != nil {
		return t, err
	}
	before, start, line := c.size, c.e.o.Clock.Now(), "hdiutil resize"
	if c.backend == backendDiskutil {
		line = diskutilResize
	}
	err = c.resizeBy(ctx, &t, line, size)
	isRefused := err != nil && line != diskutilResize && slices.Contains(resizeRefusals, classOf(err))
	if isRefused && c.e.isApple() && c.e.can.present[backendDiskutil] {
		t.Warn("hdiutil did not resize the image, and diskutil was asked: %s", reasonOf(err))
		t.Retried, t.Retries = c.e.o.Clock.Now()-start, t.Retries+1
		err = c.resizeBy(ctx, &t, diskutilResize, size)
	}
	if err == nil {
		c.sizeBefore = cmp.Or(c.sizeBefore, before)
	}
	return t, err
}

// resizeRefusals are the classes of failures of hdiutil after which diskutil may
// still resize an image.
var resizeRefusals = []Class{Unsupported, Invalid, NotFound, NoFileSystem, NotImage, NoResult, Unknown}

const diskutilResize = "diskutil image resize"

// resizeBy resizes the image by one of the tools. Tools were seen to fail after
// they had done it: then the size of the image decides.
func (c *image) resizeBy(ctx context.Context, t *engine.Report, line string, size int64) error {
	unit := int64(command.Sector)
	if line == diskutilResize {
		unit = command.DiskutilUnit
	}
	size = units.RoundUp(size, unit)
	a := command.Args{Image: c.path, Secrets: c.secrets(), Size: size, ImageOnly: c.fs.name == none}
	return c.change(ctx, t, call{doing: "resizing", cmd: command.New(line, a), bytes: max(size, c.size),
		check:   func([]byte) error { return c.checkResized(size, false) },
		confirm: func() error { return c.checkResized(size, true) }})
}

// checkResized reads the new size back. Where the files do not show it, that is
// an error if it is needed. Tools may round to 4 KiB.
func (c *image) checkResized(want int64, needed bool) error {
	i, err := c.inspect()
	if err != nil {
		return err
	}
	if needed && i.Size == 0 {
		return fmt.Errorf("%w: the files do not show the size", ErrNoResult)
	}
	if off := i.Size - want; i.Size != 0 && (off <= -4096 || off >= 4096) {
		return fmt.Errorf("%w: the image has %d bytes, %d were asked for", ErrNoResult, i.Size, want)
	}
	c.info, c.size = i, cmp.Or(i.Size, want)
	return nil
}

// Damage damages the container on purpose. Kinds: "header" (the first sectors,
// the trailer of read-only formats, the bundle's Info.plist), "table" (both
// partition tables) of unencrypted writable formats, "volume" (the start of the
// partition, as far as it can be repaired) of all unencrypted formats,
// "band-missing", "truncated", and "tail" and "flipped" of [container.Damage].
func (c *image) Damage(ctx context.Context, d engine.Damage) error {
	if err := c.prepare(ctx, "damaging", engine.Action{Do: "damage", Kind: d.Kind, Band: d.Band}); err != nil {
		return err
	}
	err := container.Corrupt(c.Dir, c.File, container.Corruption{Damage: d, UDIF: c.format.UDIF,
		Passphrase: c.spec.Passphrase, Places: c.volumeStart})
	if err != nil {
		return fmt.Errorf("damaging %q: %w", c.File, engine.Gone(err))
	}
	return nil
}

// volumeStart returns what to overwrite (n bytes at each offset) so that the
// volume does not mount and can be repaired.
func (c *image) volumeStart(img container.Image) (places []int64, n int, err error) {
	t, _, err := gpt.Read(img)
	if err == nil && len(t.Partitions) == 0 {
		err = gpt.ErrNoTable
	}
	if err != nil {
		return nil, 0, err
	}
	// Disk Utility may make an EFI partition, which comes first: the volume is in
	// the last one.
	start := t.Partitions[len(t.Partitions)-1].Offset()
	places = []int64{start}
	if c.fs.name == "btrfs" { // its first superblock is at 64 KiB
		places = append(places, start+64<<10)
	}
	return places, 4096, nil
}

// inspect inspects the files now. No tool is asked, so that this costs little
// inside a timed step. An ASIF image without a magic number does not show its
// size: the length of such a file is never the device's.
func (c *image) inspect() (container.Description, error) {
	i, err := container.Describe(c.Dir, c.File)
	if c.format.Name == diskimage.ASIF && i.Format != diskimage.ASIF {
		i.Size = 0
	}
	return i, err
}

// cipherOf is the cipher of an image as the files show it: "AES-256",
// "encrypted" where they do not show the length of the key, "" without one.
func cipherOf(i container.Description) string {
	switch {
	case i.KeyBits != 0:
		return "AES-" + strconv.Itoa(i.KeyBits)
	case i.Encrypted:
		return "encrypted"
	}
	return ""
}

// checkMade compares the files with what was requested.
func checkMade(i container.Description, f format, encryption string) error {
	encrypted := engine.Spec{Encryption: encryption}.Encrypted()
	found, isASIF := i.Format, f.Name == diskimage.ASIF
	switch {
	case encrypted && !i.Encrypted && !isASIF: // where ASIF keeps its keys is not known
		found = "not encrypted"
	case !encrypted && i.Encrypted:
		found = "encrypted"
	case i.KeyBits != 0 && cipherOf(i) != encryption:
		found = "encrypted with " + cipherOf(i)
	case i.Encrypted && found == "", found == f.Name,
		// Old tools write an empty trailer after UDRW.
		found == container.UDIF && (f.UDIF || f.Name == diskimage.UDRW),
		found == diskimage.UDRW && f.Name == diskimage.UDTO,
		// Encrypted ASIF has no known magic number.
		(found == diskimage.UDRW || found == "") && isASIF && encrypted:
		return nil
	}
	return fmt.Errorf("%w: the image is %s", ErrNoResult, cmp.Or(found, i.NoContainer))
}

// reportMade reports what was made; requested is the band size of the plan.
func reportMade(t *engine.Report, i container.Description, requested int64) {
	t.Note("cipher", cipherOf(i))
	if i.BandSize > 0 {
		t.Note("band_size_used", strconv.FormatInt(i.BandSize, 10))
		t.Note("bundle_version", strconv.FormatInt(i.Version, 10)) // 2 keeps track of unmapped space in mapped/
	}
	if requested > 0 && i.BandSize != requested {
		t.Warn("bands are %d bytes, %d were asked for", i.BandSize, requested)
	}
}
