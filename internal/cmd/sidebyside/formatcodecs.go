package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"dmgbench/internal/container/codec"
)

// Of the table of codecs: a chunk as images have it, and how many of them.
const (
	codecChunk  = 1 << 20
	codecChunks = 12
)

// chunkKeeper keeps every so many chunks of what is written to it.
type chunkKeeper struct {
	at, every int64
	chunks    [][]byte
}

func (k *chunkKeeper) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		index, within := k.at/codecChunk, k.at%codecChunk
		n := min(int64(len(rest)), codecChunk-within)
		if index%k.every == 0 {
			if within == 0 {
				k.chunks = append(k.chunks, nil)
			}
			last := &k.chunks[len(k.chunks)-1]
			*last = append(*last, rest[:n]...)
		}
		k.at += n
		rest = rest[n:]
	}
	return len(p), nil
}

// codecs measures each codec on chunks from all over the test image.
func (b *formatBench) codecs(context.Context) error {
	keep := &chunkKeeper{every: max(1, b.encodeSize/codecChunk/codecChunks)}
	if err := b.imageTo(keep, b.encodeSize); err != nil {
		return err
	}
	t := b.report.table(fmt.Sprintf("Codecs, one core, %d chunks of 1 MiB from all over the image", len(keep.chunks)),
		"codec", "encode", "decode", "of the data")
	for _, id := range codec.IDs {
		levels := []int{0}
		if id == codec.Zlib {
			levels = []int{1, 6, 9}
		}
		for _, level := range levels {
			if err := codecRow(t, id, level, keep.chunks, 5*b.turnTime); err != nil {
				return err
			}
		}
	}
	return nil
}

// codecRow encodes all chunks once and decodes them for at least so many seconds.
func codecRow(t *table, id codec.ID, level int, chunks [][]byte, atLeast float64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var plain, small, decoded int64
	encoded := make([][]byte, len(chunks))
	dst := make([]byte, codecChunk)
	began := threadCPU()
	for i, c := range chunks {
		out, err := codec.Encode(id, nil, c, level)
		if err != nil && !errors.Is(err, codec.ErrIncompressible) {
			return err
		}
		encoded[i], plain, small = out, plain+int64(len(c)), small+int64(len(out))
		if len(out) == 0 {
			small += int64(len(c)) // it is stored as it is
		}
	}
	took := (threadCPU() - began).Seconds()
	spent := 0.0
	for began := threadCPU(); spent < atLeast; spent = (threadCPU() - began).Seconds() {
		for i, c := range chunks {
			if len(encoded[i]) == 0 {
				continue
			}
			if _, err := codec.Decode(id, dst[:len(c)], encoded[i]); err != nil {
				return err
			}
			decoded += int64(len(c))
		}
	}
	name := id.String()
	if level > 0 {
		name = fmt.Sprintf("%s, level %d", name, level)
	}
	t.add(name, perCore(plain, took), perCore(decoded, spent), fmt.Sprintf("%.1f %%", 100*float64(small)/float64(plain)))
	return nil
}

// imageTo writes the first n bytes of the test image.
func (b *formatBench) imageTo(w io.Writer, n int64) error {
	if b.image == "" {
		return makeImage(w, n, b.seed)
	}
	return copyFile(w, b.image, n)
}
