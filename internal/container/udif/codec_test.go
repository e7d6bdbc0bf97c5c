package udif

import (
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"

	"dmgbench/internal/container/codec/adc"
	"dmgbench/internal/container/codec/lzfse"
)

// testCodec is what the tests read and write with.
type testCodec struct{}

func (testCodec) Decode(id uint32, dst, src []byte) (int, error) {
	switch Kind(id) {
	case KindADC:
		return adc.Decode(dst, src)
	case KindLZFSE:
		return lzfse.Decode(dst, src)
	case KindZlib:
		r, err := zlib.NewReader(bytes.NewReader(src))
		if err != nil {
			return 0, err
		}
		return exact(dst, r)
	case KindBzip2:
		return exact(dst, bzip2.NewReader(bytes.NewReader(src)))
	}
	return 0, fmt.Errorf("codec %#x", id)
}

func exact(dst []byte, r io.Reader) (int, error) {
	n, err := io.ReadFull(r, dst)
	if err != nil {
		return n, err
	}
	if m, err := r.Read(make([]byte, 1)); m != 0 || err != nil && !errors.Is(err, io.EOF) {
		return n, errors.New("too long")
	}
	return n, nil
}

func (testCodec) Encode(id uint32, dst, src []byte, level int) ([]byte, error) {
	var out []byte
	switch Kind(id) {
	case KindADC:
		out = adc.Encode(dst, src)
	case KindLZFSE:
		out = lzfse.Encode(dst, src)
	case KindZlib:
		b := bytes.NewBuffer(dst)
		w, err := zlib.NewWriterLevel(b, 1)
		if err != nil {
			return nil, err
		}
		_, _ = w.Write(src)
		if err := w.Close(); err != nil {
			return nil, err
		}
		out = b.Bytes()
	default:
		return nil, fmt.Errorf("encoder %#x", id)
	}
	if len(out)-len(dst) >= len(src) {
		return nil, fmt.Errorf("chunk: %w", ErrIncompressible)
	}
	return out, nil
}
