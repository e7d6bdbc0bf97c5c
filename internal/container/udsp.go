package container

import (
	"sync"

	"dmgbench/internal/hostio"
)

// udsp is the table of a sparse image. Bands lie in slots in the order in
// which they were first written; a slot given up is only punched, since the
// table has no holes, until a compaction moves the last ones down.
type udsp struct {
	medium
	head     udspHead        // head.next is not kept
	fileSize int64           // when it was opened
	homes    pages           // from band to the offset of its slot
	marked   bool            // an interrupted compaction was found
	copied   map[spot]uint32 // by it, copies that are the only one of their band

	mu    sync.Mutex // of what follows; entries are only ever appended
	nodes []udspNodeInfo
	end   int64 // of the last slot
	bands int

	// What of nodes is in the file, for the one commit that runs.
	savedNodes, savedEntries int
}

var _ layout = (*udsp)(nil)

func createUDSP(dir *hostio.Dir, name string, size, band int64, e Encryption) error {
	head := udspHead{band: band, size: size}
	return e.createFile(dir, name, udspNode, func(f target) error {
		_, err := f.WriteAt(head.encode(nil), 0)
		return err
	})
}

// openUDSP makes the image and takes f over.
func openUDSP(f store, o OpenOptions) (*mapped, error) {
	u, err := loadUDSP(medium{f, o.sync()})
	if err != nil {
		return nil, err
	}
	m := &mapped{path: f.Path(), opts: o, f: f, chunk: u.head.band, size: u.head.size, layout: u}
	if o.ReadOnly {
		return m, nil
	}
	if u.marked {
		if err := u.squeeze(func(int64) bool { return true }); err != nil {
			return nil, err
		}
	}
	// What a crash left behind the last slot would show in the next one.
	if u.fileSize > u.end {
		return m, f.Truncate(u.end)
	}
	return m, nil
}

func (u *udsp) format() string { return UDSP }

func (u *udsp) find(i int64) (at int64, partly bool)         { return u.homes.get(i), false }
func (u *udsp) readPartly(i int64, p []byte, in int64) error { return nil }
func (u *udsp) settle(i int64) error                         { return nil }
func (u *udsp) hold(first, last int64)                       {}
func (u *udsp) release(first, last int64)                    {}
func (u *udsp) drops() bool                                  { return false }
func (u *udsp) drop(i int64) error                           { return nil }

func (u *udsp) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bands
}

// claim appends slots, and nodes where the last one is full. The file is made
// longer before anybody can find the slots.
func (u *udsp) claim(first, last int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	type home struct{ band, at int64 }
	var made []home
	nodes, end := len(u.nodes), u.end
	entries := len(u.nodes[nodes-1].entries)
	for i := first; i <= last; i++ {
		if u.homes.get(i) != 0 {
			continue
		}
		n := &u.nodes[len(u.nodes)-1]
		if len(n.entries) == n.cap {
			u.nodes = append(u.nodes, udspNodeInfo{at: u.end, cap: udspIndexLen})
			n = &u.nodes[len(u.nodes)-1]
			u.end += udspNode
		}
		n.entries = append(n.entries, uint32(i)+1)
		made = append(made, home{i, u.end})
		u.end += u.head.band
	}
	if len(made) == 0 {
		return nil
	}
	if err := u.f.Truncate(u.end); err != nil {
		u.nodes, u.end = u.nodes[:nodes], end
		u.nodes[nodes-1].entries = u.nodes[nodes-1].entries[:entries]
		return err
	}
	for _, h := range made {
		u.homes.set(h.band, h.at)
	}
	u.bands += len(made)
	return nil
}

// saved notes that all nodes are in the file.
func (u *udsp) saved() {
	u.savedNodes = len(u.nodes)
	u.savedEntries = len(u.nodes[u.savedNodes-1].entries)
}

// commit syncs the data and then writes what was added to the table: new nodes
// while nothing leads to them, the entries of the node that was the last, and
// then the way to the new ones.
func (u *udsp) commit() error {
	u.mu.Lock()
	nodes := append([]udspNodeInfo(nil), u.nodes...)
	u.mu.Unlock()
	if err := u.sync(); err != nil {
		return err
	}
	old, last := u.savedNodes-1, len(nodes)-1
	if old < last {
		for k := old + 1; k <= last; k++ {
			if err := u.putNode(nodes, k, last); err != nil {
				return err
			}
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	if err := u.addEntries(nodes, old); err != nil {
		return err
	}
	if old < last {
		if err := u.putNode(nodes, old, last); err != nil {
			return err
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	u.savedNodes, u.savedEntries = len(nodes), len(nodes[last].entries)
	return nil
}

// addEntries writes the entries of node k sector by sector, each on the disk
// before the next: disks keep a sector whole, but not the order of two, and a
// table that goes on behind a 0 is none.
func (u *udsp) addEntries(nodes []udspNodeInfo, k int) error {
	n := nodes[k]
	at, _ := udspTable(k)
	for done := u.savedEntries; done < len(n.entries); {
		done = min(len(n.entries), ((at+4*done)/SectorSize+1)*SectorSize/4-at/4)
		part := append([]udspNodeInfo(nil), nodes[:k+1]...)
		part[k].entries = n.entries[:done]
		if err := u.putNode(part, k, k); err != nil {
			return err
		}
		if err := u.sync(); err != nil {
			return err
		}
	}
	return nil
}

// putNode writes node k of a chain whose last one is last.
func (u *udsp) putNode(nodes []udspNodeInfo, k, last int) error {
	next := int64(0)
	if k < last {
		next = nodes[k+1].at
	}
	b := encodeUDSPIndex(k-1, next, nodes[k].entries)
	if k == 0 {
		h := u.head
		h.next = next
		b = h.encode(nodes[0].entries)
	}
	return u.put(b, nodes[k].at)
}
