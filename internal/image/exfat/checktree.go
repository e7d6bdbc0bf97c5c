package exfat

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"dmgbench/internal/system/units"
)

// claim follows an allocation of n clusters (n < 0: to the end of the chain)
// and marks them as owned. It returns the clusters up to the first problem, and
// the problem: ChainShort, ChainLong, ChainBad, ChainCycle or CrossLink. It
// ends after as many steps as the volume has clusters, whatever the FAT
// contains. The error is that of the device.
func (c *checker) claim(first uint32, n int64, contiguous bool) (runs []run, problem Kind, err error) {
	runs, count, next, err := c.follow(first, n, contiguous, func(cluster uint32, _ int64) bool {
		ok := c.g.valid(cluster) && !c.owned.taken(cluster-firstData)
		if ok {
			c.owned.put(cluster-firstData, 1, true)
		}
		return ok
	})
	ended := !contiguous && next == endOfChain
	switch {
	case err != nil, n < 0 && count > 0 && ended, n == 0:
	case count == n:
		if !contiguous && !ended {
			problem = ChainLong
		}
	case count > 0 && ended:
		problem = ChainShort
	case !c.g.valid(next):
		problem = ChainBad
	case slices.ContainsFunc(runs, func(r run) bool { return next >= r.first && next < r.end() }):
		problem = ChainCycle
	default:
		problem = CrossLink
	}
	return runs, problem, err
}

// task is a directory to be read. Its clusters have been claimed.
type task struct {
	path string // ends with a slash
	runs []run
}

// walkTree reads all directories from the root.
func (c *checker) walkTree() error {
	runs, problem, err := c.claim(c.g.Root, -1, false)
	if err != nil {
		return err
	}
	if problem != "" {
		c.unsure = true
		c.report.add(c.chainFinding(problem, "/", runs, false, nil))
	}
	for c.tasks = []task{{"/", runs}}; len(c.tasks) > 0; {
		t := c.tasks[len(c.tasks)-1]
		c.tasks = c.tasks[:len(c.tasks)-1]
		extents, _ := cut(c.g.appendRuns(nil, t.runs), maxDirSize)
		data, used, err := c.readEntries(extents, maxDirSize)
		if err != nil {
			return err
		}
		d := &checkDir{c: c, path: t.path, extents: extents, names: map[string]bool{}}
		for i := 0; i < used; {
			n, err := d.entry(data[i*entryLen:used*entryLen], i)
			if err != nil {
				return err
			}
			i += n
		}
		c.report.Dirs++
	}
	return nil
}

// chainFinding describes a broken chain. If shorten is given, it cuts the owner
// to the clusters that were reached.
func (c *checker) chainFinding(
	problem Kind, path string, runs []run, contiguous bool, shorten func(clusters uint32) error,
) Finding {
	f := Finding{Kind: problem, Path: path}
	last := lastCluster(runs)
	for _, r := range runs {
		f.Count += r.count
	}
	if len(runs) > 0 {
		f.Cluster = runs[0].first
	}
	f.Detail = fmt.Sprintf("reached %d clusters", f.Count)
	if problem == CrossLink || shorten == nil && problem != ChainLong && last == 0 {
		return f
	}
	f.fix = func() error {
		if !contiguous && last != 0 && problem != ChainShort {
			if err := c.fat.set(last, endOfChain); err != nil {
				return err
			}
		}
		if shorten == nil || problem == ChainLong {
			return nil
		}
		return shorten(f.Count)
	}
	return f
}

// checkUpcase finds the table in the root directory before names are judged by
// it.
func (c *checker) checkUpcase() error {
	root, err := c.loadDir(nil)
	if err != nil {
		if structural(err) {
			return nil // the walk reports what is wrong with the root
		}
		return err
	}
	detail := "missing"
	if e, _ := root.system(typeUpcase); e != nil {
		t, err := c.readUpcase(decodeSystem(e))
		if err != nil && !structural(err) {
			return err
		}
		if t != nil {
			c.upcase = t
			return nil
		}
		detail = "damaged"
	}
	c.report.add(Finding{Kind: Upcase, Detail: detail + "; names were judged by the standard table"})
	return nil
}

// checkDir is a directory that is being checked.
type checkDir struct {
	c       *checker
	path    string
	extents []Extent
	names   map[string]bool
}

// entry checks the set that starts at entry number i and returns its length in
// entries.
func (d *checkDir) entry(b []byte, i int) (int, error) {
	switch b[0] {
	case typeFile:
		n := setLength(b)
		problem := setProblem("no room for the set")
		if n > 0 {
			var rec record
			if rec, problem = decodeSet(b[:n*entryLen], d.c.upcase); problem != setStructure {
				return n, d.file(i, b[:n*entryLen], &rec, problem)
			}
		}
		d.c.unsure = true // clusters of the file that it described may be in use
		d.c.report.add(Finding{Kind: EntryStructure, Path: d.path, Detail: fmt.Sprintf("entry %d: %s", i, problem)})
	case typeBitmap, typeUpcase:
		if d.path == "/" {
			return 1, d.system(b)
		}
	}
	return 1, nil
}

// system claims the clusters of bitmap or up-case table.
func (d *checkDir) system(b []byte) error {
	c := d.c
	file := decodeSystem(b)
	kind, name := Upcase, "up-case table"
	if b[0] == typeBitmap {
		kind, name = Bitmap, "allocation bitmap"
		if b[1]&1 != 0 || c.bitmap != nil {
			return nil
		}
		c.bitmap = &file
	}
	if file.size <= 0 || file.size > int64(c.g.Clusters)*c.g.clusterSize() {
		c.report.add(Finding{Kind: kind, Detail: fmt.Sprintf("has %d bytes", file.size)})
		return nil
	}
	runs, problem, err := c.claim(file.first, c.g.clustersFor(file.size), false)
	if problem != "" {
		f := c.chainFinding(problem, name, runs, false, nil)
		if problem != ChainLong {
			f.fix = nil
		}
		c.report.add(f)
	}
	return err
}

// file checks one entry set and claims its clusters; a directory becomes a
// task. What is wrong with sizes is corrected in a copy of the record first, so
// that its clusters can be claimed; a fix writes that copy. Sets with a wrong
// checksum are reported and never written: any of their fields may be wrong.
func (d *checkDir) file(i int, set []byte, rec *record, problem setProblem) error {
	c := d.c
	path := d.path + rec.text()
	usable := problem == "" && !d.names[c.upcase.key(rec.name)]
	d.name(i, set, rec, path, problem)
	fixed := *rec
	store := func() error {
		fixed.patch(set)
		return d.put(i, set)
	}
	add := func(f Finding) {
		if problem == setSum { // the whole set is untrustworthy
			f.fix = nil
		}
		c.report.add(f)
	}
	if !rec.isDir() {
		c.report.Files++
	}
	if detail := fixed.fit(&c.g, c.g.Clusters); detail != "" {
		add(Finding{Kind: SizeInvalid, Path: path, Detail: detail, fix: store})
	}
	for at := entryLen; at < len(set); at += entryLen {
		c.unsure = c.unsure || set[at] == typeVendor // whose clusters are not followed
	}
	if fixed.size == 0 {
		return nil
	}
	runs, broken, err := c.claim(rec.first, c.g.clustersFor(fixed.size), rec.noChain)
	if err != nil {
		return err
	}
	if usable && broken == CrossLink && len(runs) == 0 {
		if drop, err := d.secondName(i, set, rec, path); err != nil || drop != nil {
			add(Finding{Kind: CrossLink, Path: path, Cluster: rec.first, Detail: "a file has two names", fix: drop})
			return err
		}
	}
	if usable && len(runs) > 0 {
		d.recordName(i, len(set), rec, path)
	}
	if broken != "" {
		c.unsure = c.unsure || rec.isDir() && broken != ChainLong
		add(c.chainFinding(broken, path, runs, rec.noChain, func(clusters uint32) error {
			fixed.fit(&c.g, clusters)
			return store()
		}))
	}
	if rec.isDir() && len(runs) > 0 {
		c.tasks = append(c.tasks, task{path + "/", runs})
	}
	return nil
}

// fit corrects sizes that are impossible with so many clusters, and returns what
// was wrong.
func (r *record) fit(g *geometry, clusters uint32) (detail string) {
	size, valid, first := r.size, r.valid, r.first
	r.size = max(0, min(r.size, int64(clusters)*g.clusterSize()))
	if r.isDir() {
		r.size = min(units.RoundUp(r.size, g.clusterSize()), maxDirSize)
		r.valid = r.size
	}
	r.valid = max(0, min(r.valid, r.size))
	if r.size == 0 {
		r.first, r.noChain = 0, false
	}
	if r.size == size && r.valid == valid && r.first == first {
		return ""
	}
	return fmt.Sprintf("%d bytes, valid to %d, from cluster %d", size, valid, first)
}

// name reports what is wrong with the set as such.
func (d *checkDir) name(i int, set []byte, rec *record, path string, problem setProblem) {
	c := d.c
	switch problem {
	case setSum:
		c.report.add(Finding{Kind: EntryChecksum, Path: path})
		return
	case setName:
		c.report.add(Finding{Kind: NameInvalid, Path: path})
	case setHash:
		c.report.add(Finding{Kind: NameHash, Path: path, fix: func() error {
			binary.LittleEndian.PutUint16(set[entryLen+4:], c.upcase.hash(rec.name))
			binary.LittleEndian.PutUint16(set[2:], setChecksum(set))
			return d.put(i, set)
		}})
	}
	key := c.upcase.key(rec.name)
	if d.names[key] {
		c.report.add(Finding{Kind: NameDuplicate, Path: path})
	}
	d.names[key] = true
}

// put writes an entry set back, entry by entry, since clusters of a directory
// need not be neighbours.
func (d *checkDir) put(i int, set []byte) error {
	for j := 0; j < len(set); j += entryLen {
		if err := writeFull(d.c.dev, set[j:j+entryLen], deviceOffset(d.extents, int64(i*entryLen+j))); err != nil {
			return err
		}
	}
	return nil
}

// nameCost is about the memory that a firstName takes, in bytes, without its
// path.
const nameCost = 96

// recordName records where the owner of clusters is named, as far as memory
// allows, if its set is in one piece. The next finding, if there is one, is
// about its chain.
func (d *checkDir) recordName(i, n int, rec *record, path string) {
	c := d.c
	off := int64(i) * entryLen
	e := d.extents[find(d.extents, off)]
	if !rec.isDir() {
		path = ""
	}
	cost := nameCost + int64(len(path))
	if off+int64(n) > e.File+e.Length || cost > c.room { // a set in two pieces cannot be removed with one write
		return
	}
	c.room -= cost
	c.names[rec.first] = firstName{at: e.Device + off - e.File, n: n, path: path, finding: len(c.report.Findings)}
}

// secondName checks whether the set is a second name of a file that has one
// already, as a crash during a move leaves it, and returns a function that
// removes the older name: see [record.renamed]. It returns nil if the set is
// not such a name, or if the older one cannot be determined.
func (d *checkDir) secondName(i int, set []byte, rec *record, path string) (drop func() error, err error) {
	c := d.c
	had, ok := c.names[rec.first]
	if !ok {
		return nil, nil
	}
	other := make([]byte, had.n)
	if err := readFull(c.dev, other, had.at); err != nil {
		return nil, err
	}
	was, problem := decodeSet(other, c.upcase)
	if problem != "" || was.isDir() != rec.isDir() || was.created != rec.created { // which no move changes
		return nil, nil
	}
	before, now := was.accessed.time(), rec.accessed.time()
	if now.Before(before) {
		return func() error {
			markFree(set)
			return d.put(i, set)
		}, nil
	}
	// Entries that were found below one of the names of a directory now count
	// below the other, so that one check moves at most one directory: otherwise
	// all paths to it could be removed.
	if before.Equal(now) || rec.isDir() && (c.moved || strings.HasPrefix(path, had.path+"/")) {
		return nil, nil
	}
	c.moved = c.moved || rec.isDir()
	// The findings about the older name are taken back where the newer differs,
	// since the file was written after the move. Another check reports what is
	// left.
	c.unsure = c.unsure || was.size != rec.size || was.noChain != rec.noChain
	if had.finding < len(c.report.Findings) {
		f := &c.report.Findings[had.finding]
		if f.Kind != CrossLink && f.Cluster == rec.first {
			f.fix, c.unsure = nil, true
		}
	}
	d.recordName(i, len(set), rec, path)
	return func() error {
		markFree(other)
		return writeFull(c.dev, other, had.at)
	}, nil
}
