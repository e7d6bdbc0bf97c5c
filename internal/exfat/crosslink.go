package exfat

import "strings"

// firstName is the place of the first name that was found for some clusters.
type firstName struct {
	at   int64 // offset of the entry set on the device
	n    int   // bytes
	path string
	// finding is the number of the finding about their chain, if it is one.
	finding int
}

// nameCost is about the memory that a firstName takes, in bytes, without its path.
const nameCost = 96

// recordName records where the owner of clusters is named, as far as memory allows, if its set is in one piece. The
// next finding, if there is one, is about its chain.
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

// secondName checks whether the set is a second name of a file that has one already, as a crash during a move leaves
// it, and returns a function that removes the older name: see [record.renamed]. It returns nil if the set is not such
// a name, or if the older one cannot be determined.
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
	switch before, now := was.accessed.time(), rec.accessed.time(); {
	case now.Before(before):
		return func() error {
			markFree(set)
			return d.put(i, set)
		}, nil
	case !before.Before(now) || !c.mayDrop(had, rec, path):
		return nil, nil
	}
	c.withdraw(had, &was, rec)
	d.recordName(i, len(set), rec, path)
	return func() error {
		markFree(other)
		return writeFull(c.dev, other, had.at)
	}, nil
}

// mayDrop prevents that all paths to a directory are removed: entries that were found below one of its names now count
// below the other, so one check moves at most one directory.
func (c *checker) mayDrop(had firstName, rec *record, path string) bool {
	if !rec.isDir() {
		return true
	}
	if c.moved || strings.HasPrefix(path, had.path+"/") {
		return false
	}
	c.moved = true
	return true
}

// withdraw takes back the findings about the older of two names where the newer differs, since the file was written
// after the move. Another check reports what is left.
func (c *checker) withdraw(had firstName, was, rec *record) {
	broken := false
	if had.finding < len(c.report.Findings) {
		f := &c.report.Findings[had.finding]
		if broken = f.Kind != CrossLink && f.Cluster == rec.first; broken {
			f.fix = nil
		}
	}
	c.unsure = c.unsure || broken || was.size != rec.size || was.noChain != rec.noChain
}

// markFree makes a set of entries free ones.
func markFree(set []byte) {
	for i := 0; i < len(set); i += entryLen {
		set[i] &^= inUse
	}
}
