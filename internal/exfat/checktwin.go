package exfat

import "strings"

// firstName is where the first name lies that was found for some clusters.
type firstName struct {
	at   int64 // offset of the entry set on the device
	n    int   // bytes
	path string
}

// nameCost is about the memory that a firstName takes, in bytes, without its path.
const nameCost = 96

// remember notes where the owner of clusters is named, as far as memory allows, and where its set lies in one piece.
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
	c.names[rec.first] = firstName{at: e.Device + off - e.File, n: n, path: path}
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
	if problem != "" || was.isDir() != rec.isDir() || was.size != rec.size || was.noChain != rec.noChain {
		return nil, nil
	}
	switch before, now := was.accessed.time(), rec.accessed.time(); {
	case before.Before(now) && (!rec.isDir() || !strings.HasPrefix(path, had.path+"/")):
		return func() error {
			unuse(other)
			return writeFull(c.dev, other, had.at)
		}, nil
	case now.Before(before):
		return func() error {
			unuse(set)
			return d.put(i, set)
		}, nil
	}
	return nil, nil
}

// unuse makes a set of entries free ones.
func unuse(set []byte) {
	for i := 0; i < len(set); i += entryLen {
		set[i] &^= inUse
	}
}
