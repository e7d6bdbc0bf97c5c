package container

import (
	"sync"
	"sync/atomic"
)

// pageLen is how many chunks a page of a table covers.
const pageLen = 512

// pagedTable maps chunks to numbers, 0 where none was stored. It takes memory only around stored
// numbers, and a lookup waits for no store.
type pagedTable struct {
	mu    sync.RWMutex
	pages map[int64]*[pageLen]atomic.Int64
}

// page returns the page of chunk i, nil if it has none.
func (t *pagedTable) page(i int64) *[pageLen]atomic.Int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.pages[i/pageLen]
}

func (t *pagedTable) get(i int64) int64 {
	p := t.page(i)
	if p == nil {
		return 0
	}
	return p[i%pageLen].Load()
}

func (t *pagedTable) set(i, v int64) {
	p := t.page(i)
	if p == nil {
		t.mu.Lock()
		if t.pages == nil {
			t.pages = map[int64]*[pageLen]atomic.Int64{}
		}
		if p = t.pages[i/pageLen]; p == nil {
			p = new([pageLen]atomic.Int64)
			t.pages[i/pageLen] = p
		}
		t.mu.Unlock()
	}
	p[i%pageLen].Store(v)
}

// clear removes all numbers.
func (t *pagedTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pages = nil
}
