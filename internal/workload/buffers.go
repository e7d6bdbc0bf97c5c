package workload

import (
	"fmt"
	"sync"

	"dmgbench/internal/hostio"
)

// bufferAlign is what every file's buffer starts at: enough for direct
// transfers of any medium, and no two workers share a page.
const bufferAlign = 4096

// Buffers keeps memory for file I/O mapped and touched from step to step, since
// a transfer into fresh pages runs at a quarter of the speed. The zero value is
// ready; it is safe for concurrent use.
type Buffers struct {
	mu   sync.Mutex
	idle []*hostio.Buffer
}

// get lends at least n bytes; what is too small for it is unmapped first.
func (b *Buffers) get(n int64) (*hostio.Buffer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, buf := range b.idle {
		if int64(len(buf.Bytes())) >= n {
			b.idle = append(b.idle[:i], b.idle[i+1:]...)
			return buf, nil
		}
	}
	for _, buf := range b.idle {
		buf.Free()
	}
	b.idle = nil
	buf, err := hostio.AlignedBuffer(int(max(n, bufferAlign)))
	if err != nil {
		return nil, fmt.Errorf("preparing buffers: %w", err)
	}
	return buf, nil
}

func (b *Buffers) put(buf *hostio.Buffer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, buf)
}

// Free unmaps everything that is not lent.
func (b *Buffers) Free() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, buf := range b.idle {
		buf.Free()
	}
	b.idle = nil
}

func pageUp(n int64) int64 { return (n + bufferAlign - 1) / bufferAlign * bufferAlign }
