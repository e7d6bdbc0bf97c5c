package container

import (
	"sync"
	"sync/atomic"
)

// pageLen is how many chunks a page of a table covers.
const pageLen = 512

// pages is a table from chunk to a number, 0 where nothing was stored, that
// takes memory only where something is. Lookups never wait for a store's work.
type pages struct {
	mu   sync.RWMutex
	list map[int64]*[pageLen]atomic.Int64
}

func (t *pages) page(i int64) *[pageLen]atomic.Int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.list[i/pageLen]
}

func (t *pages) get(i int64) int64 {
	p := t.page(i)
	if p == nil {
		return 0
	}
	return p[i%pageLen].Load()
}

func (t *pages) set(i, v int64) {
	p := t.page(i)
	if p == nil {
		t.mu.Lock()
		if t.list == nil {
			t.list = map[int64]*[pageLen]atomic.Int64{}
		}
		if p = t.list[i/pageLen]; p == nil {
			p = new([pageLen]atomic.Int64)
			t.list[i/pageLen] = p
		}
		t.mu.Unlock()
	}
	p[i%pageLen].Store(v)
}

// clear forgets all.
func (t *pages) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = nil
}
