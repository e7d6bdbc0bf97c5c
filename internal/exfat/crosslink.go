package exfat

import "strings"

// firstName is where the first name lies that was found for some clusters.
type firstName struct {
	at   int64 // offset of the entry set on the device
	n    int   // bytes
	path string
	// finding is the number of the finding about their chain, if it is one.
	finding int
}

// nameCost is about the memory that a firstName takes, in bytes, without its path.
const nameCost = 96

// remember notes where the owner of clusters is named, as far as memory allows, and where its set lies in one piece. The next
// finding is about its chain, if there is something to find.
func (d *checkDir) remember(i, n int, rec *record, path string) {
	c := d.c
	off := int64(i) * entryLen
	e := d.extents[find(d.extents, off)]
	if !rec.isDir() {
		path = ""
	}
	cost := nameCost + int64(len(path))
	if off+int64(n) > e.File+e.Length || cost > c.room {
		return
	}
	c.room -= cost
	c.names[rec.first] = firstName{at: e.Device + off - e.File, n: n, path: path, finding: len(c.report.Findings)}
}

// twin looks whether the set is a second name of what has one already, as a crash leaves it amid a move, and gives what takes
// the older away: see [record.renamed]. Nil says that it is not, or that nothing tells which is older.
func (d *checkDir) twin(i int, set []byte, rec *record, path string) (drop func() error, err error) {
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
			unuse(set)
			return d.put(i, set)
		}, nil
	case !before.Before(now) || !c.mayDrop(had, rec, path):
		return nil, nil
	}
	c.supersede(had, &was, rec)
	d.remember(i, len(set), rec, path)
	return func() error {
		unuse(other)
		return writeFull(c.dev, other, had.at)
	}, nil
}

// mayDrop guards against taking away all that leads to a directory: what was found below the one name of it counts from the
// other on, so that of directories one check moves one.
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

// supersede takes back what was concluded from the older of two names where the newer says another thing: that was written on
// since. Another check will tell.
func (c *checker) supersede(had firstName, was, rec *record) {
	broken := false
	if had.finding < len(c.report.Findings) {
		f := &c.report.Findings[had.finding]
		if broken = f.Kind != CrossLink && f.Cluster == rec.first; broken {
			f.fix = nil
		}
	}
	c.unsure = c.unsure || broken || was.size != rec.size || was.noChain != rec.noChain
}

// unuse makes a set of entries free ones.
func unuse(set []byte) {
	for i := 0; i < len(set); i += entryLen {
		set[i] &^= inUse
	}
}
