package exfat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"dmgbench/internal/image/blockdev"
	"dmgbench/internal/system/units"
)

// CheckOptions are the choices of Check.
type CheckOptions struct {
	// Repair puts right what can be put right without guessing; see the kinds
	// of findings.
	Repair bool
}

// checker reads a volume once. It uses the functions by which Mount reads the
// structures of a volume, and a view of its own of the clusters that something
// owns.
type checker struct {
	*Volume // without bitmap and state
	report  *Report
	owned   *bitmap              // clusters that something was found to own
	bitmap  *systemFile          // nil until it is found
	names   map[uint32]firstName // by the first cluster
	tasks   []task               // directories still to be read
	room    int64                // that more names may take, bytes
	moved   bool                 // a directory will be known by another name than it was read by
	unsure  bool                 // something that may own clusters could not be read: lost clusters are not freed
}

// Check reads all metadata of a volume that is not mounted and reports what is
// wrong with it. It returns an error for a device without an exFAT volume and
// for one that cannot be read. Memory is bounded by DefaultMetadataLimit as for Mount,
// plus the largest directory, and a quarter of the limit for the names of
// clusters.
func Check(dev blockdev.Device, o CheckOptions) (_ *Report, err error) {
	defer annotate(&err, "checking volume")
	v := &Volume{dev: dev, upcase: standardCase(), limit: DefaultMetadataLimit,
		dirs: map[*directory]struct{}{}}
	c := &checker{Volume: v, report: &Report{}, names: map[uint32]firstName{}, room: v.limit / 4}
	if err := c.run(); err != nil {
		return nil, err
	}
	if o.Repair {
		if err := c.repair(); err != nil {
			return nil, err
		}
	}
	return c.report, nil
}

// run does the checks in the order in which they depend on each other: boot
// regions, FAT, names, tree, bitmap.
func (c *checker) run() error {
	if err := c.checkBoot(); err != nil {
		return err
	}
	if err := c.g.fitsMemory(c.limit); err != nil {
		return err
	}
	c.fat = newFAT(c.dev, &c.g)
	c.owned = newBitmap(make([]byte, units.RoundUp((int64(c.g.Clusters)+7)/8, 8)), c.g.Clusters)
	c.owned.page = block
	for _, step := range []func() error{c.checkFATHead, c.checkUpcase, c.walkTree, c.checkBitmap} {
		if err := step(); err != nil {
			return err
		}
	}
	used := int64(c.owned.count()) * c.g.clusterSize()
	c.report.Used, c.report.Free = used, int64(c.g.Clusters)*c.g.clusterSize()-used
	return nil
}

// checkBoot compares the two boot regions and reads the flags.
func (c *checker) checkBoot() error {
	g, region, usedBackup, err := readBoot(c.dev)
	if err != nil {
		return err
	}
	c.g = g
	if usedBackup {
		fix := func() error { return writeFlush(c.dev, region, 0) }
		c.report.add(Finding{Kind: BootMain, Detail: "damaged", fix: fix})
	} else {
		at := bootSectors * g.sectorSize()
		_, other, err := readRegion(c.dev, bootSectors, g.sectorSize())
		detail := "differs from the main one"
		if err == nil { // what changes while the volume is in use, in the main region alone
			copy(other[106:108], region[106:])
			other[112] = region[112]
		} else if detail = err.Error(); !structural(err) {
			return err
		}
		if !bytes.Equal(region, other) {
			fix := func() error { return writeFlush(c.dev, region, at) }
			c.report.add(Finding{Kind: BootBackup, Detail: detail, fix: fix})
		}
	}
	if g.Flags&flagMedia != 0 {
		c.report.add(Finding{Kind: MediaFailure})
	}
	if g.Flags&flagDirty != 0 {
		c.report.add(Finding{Kind: DirtyFlag, Detail: "the volume was not unmounted cleanly"})
	}
	return nil
}

// checkFATHead looks at the two entries that belong to no cluster.
func (c *checker) checkFATHead() error {
	for i, want := range []uint32{0xFFFFFFF8, endOfChain} {
		got, err := c.fat.next(uint32(i))
		if err != nil {
			return err
		}
		if got != want {
			fix := func() error { return c.fat.set(uint32(i), want) }
			c.report.add(Finding{Kind: FATHead, Detail: fmt.Sprintf("entry %d is %#x", i, got), fix: fix})
		}
	}
	return nil
}

// checkBitmap compares the bitmap on the device with what was found to be
// owned.
func (c *checker) checkBitmap() error {
	if c.bitmap == nil {
		c.report.add(Finding{Kind: Bitmap, Detail: "the root directory does not name one"})
		return nil
	}
	extents, data, err := c.readBitmap(*c.bitmap)
	if err == nil {
		return c.compareBitmaps(newBitmap(data, c.g.Clusters), extents)
	}
	if structural(err) {
		c.report.add(Finding{Kind: Bitmap, Detail: err.Error()})
		return nil
	}
	return err
}

// compareBitmaps reports the differences, run by run.
func (c *checker) compareBitmaps(disk *bitmap, extents []Extent) error {
	done := false
	rewrite := func() error {
		if done {
			return nil
		}
		done = true
		right := bytes.Clone(c.owned.data[:(c.g.Clusters+7)/8])
		for i := range right {
			if c.unsure {
				right[i] |= disk.data[i]
			}
		}
		_, err := transfer(c.dev.WriteAt, extents, right, 0)
		return err
	}
	for at := uint32(0); at < c.g.Clusters; {
		if disk.word(at&^63) == c.owned.word(at&^63) {
			at = at&^63 + 64
			continue
		}
		marked, owned := disk.taken(at), c.owned.taken(at)
		end := at + 1
		for end < c.g.Clusters && disk.taken(end) == marked && c.owned.taken(end) == owned {
			end++
		}
		if marked != owned {
			if err := c.difference(at, end, marked, rewrite); err != nil {
				return err
			}
		}
		at = end
	}
	return nil
}

// difference reports clusters [at, end) that are marked but not owned, or owned
// but not marked. The first are only lost space, or bad clusters, which stay
// marked; the second could be given to another file, and are found after lost
// writes alone.
func (c *checker) difference(at, end uint32, marked bool, rewrite func() error) error {
	bad := marked
	for i := at; bad && i < end; i++ {
		next, err := c.fat.next(i + firstData)
		if err != nil {
			return err
		}
		bad = next == badCluster
	}
	f := Finding{Kind: BitmapMissing, Cluster: at + firstData, Count: end - at, fix: rewrite}
	switch {
	case bad:
		c.owned.put(at, end-at, true)
		return nil
	case marked && c.unsure:
		f.Kind, f.Detail, f.fix = BitmapLost, "kept, because something damaged may own them", nil
	case marked:
		f.Kind = BitmapLost
	}
	c.report.add(f)
	return nil
}

// repair marks the volume dirty, applies the fixes of entries, chains and
// bitmap, and clears the flag last, if no finding is left. Fixes run in the
// order of the findings: those of entries and chains before that of the bitmap,
// which was compared with what the fixed entries own. A repair that is
// interrupted can be repeated.
func (c *checker) repair() error {
	flags := c.g.Flags
	left, dirty := c.report.More > 0, (*Finding)(nil)
	work := slices.ContainsFunc(c.report.Findings, func(f Finding) bool { return f.fix != nil })
	if work && flags&flagDirty == 0 {
		if err := c.setFlags(flags | flagDirty); err != nil {
			return err
		}
	}
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		switch {
		case f.fix != nil:
			if err := f.fix(); err != nil {
				return fmt.Errorf("repairing %s: %w", f.Kind, err)
			}
			f.Repaired = true
		case f.Kind == DirtyFlag:
			dirty = f
		default:
			left = true
		}
	}
	if err := writeChunks(c.dev, c.fat.take(nil)); err != nil {
		return err
	}
	if err := c.dev.Flush(); err != nil {
		return err
	}
	if left || !work && dirty == nil {
		return nil
	}
	if dirty != nil {
		dirty.Repaired = true
	}
	return c.setFlags(flags &^ flagDirty)
}

// setFlags rewrites the flags in the main boot sector.
func (c *checker) setFlags(flags uint16) error {
	b := binary.LittleEndian.AppendUint16(nil, flags)
	return writeFlush(c.dev, b, 106)
}

// Kind is the kind of a defect.
type Kind string

// What Check finds. Those marked R are put right by CheckOptions.Repair.
const (
	BootMain       Kind = "main boot region"            // R: from the backup
	BootBackup     Kind = "backup boot region"          // R: from the main one
	DirtyFlag      Kind = "dirty flag"                  // R: once everything else is right
	MediaFailure   Kind = "media failure flag"          //
	FATHead        Kind = "head of the FAT"             // R
	Upcase         Kind = "up-case table"               //
	Bitmap         Kind = "allocation bitmap"           // missing or unreadable: it is not checked further
	BitmapLost     Kind = "lost clusters"               // R: freed
	BitmapMissing  Kind = "used clusters marked free"   // R: marked
	CrossLink      Kind = "cluster with two owners"     // R, for two names of one file: the one given last stays
	ChainShort     Kind = "chain ends too early"        // R: the file is cut
	ChainLong      Kind = "chain is longer than needed" // R: cut; the rest is lost clusters
	ChainCycle     Kind = "chain is a cycle"            // R: the file is cut
	ChainBad       Kind = "chain leaves the volume"     // R: the file is cut
	EntryStructure Kind = "entry set"                   //
	EntryChecksum  Kind = "checksum of an entry set"    //
	NameInvalid    Kind = "forbidden name"              //
	NameHash       Kind = "hash of a name"              // R
	NameDuplicate  Kind = "name used twice"             //
	SizeInvalid    Kind = "impossible size"             // R: set to what the clusters hold
)

// maxFindings bounds the memory that a report takes.
const maxFindings = 10_000

// Finding is one thing that is wrong.
type Finding struct {
	Kind     Kind
	Path     string // of the file or directory concerned, if there is one
	Cluster  uint32 // the first cluster concerned, if there is one
	Count    uint32 // number of clusters concerned
	Detail   string
	Repaired bool
	fix      func() error
}

// String is one line for people.
func (f Finding) String() string {
	s := string(f.Kind)
	if f.Path != "" {
		s += fmt.Sprintf(" of %q", f.Path)
	}
	if f.Count > 0 {
		s += fmt.Sprintf(": %d from cluster %d", f.Count, f.Cluster)
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	if f.Repaired {
		s += " (repaired)"
	}
	return s
}

// Report is what Check found.
type Report struct {
	Findings    []Finding
	More        int // findings beyond the 10,000 that are kept
	Files, Dirs int
	Used        int64 // bytes in clusters that something owns
	Free        int64 // bytes in the others
}

// Clean reports whether the volume is right, perhaps after repairs.
func (r *Report) Clean() bool {
	return r.More == 0 && !slices.ContainsFunc(r.Findings, func(f Finding) bool { return !f.Repaired })
}

// add appends a finding, or counts it once the report is full.
func (r *Report) add(f Finding) {
	if len(r.Findings) == maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}

// firstName is the place of the first name that was found for some clusters.
type firstName struct {
	at   int64 // offset of the entry set on the device
	n    int   // bytes
	path string
	// finding is the number of the finding about their chain, if it is one.
	finding int
}
