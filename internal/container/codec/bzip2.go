package codec

import (
	"bytes"
	stdlib "compress/bzip2"
	"errors"
	"fmt"
	"sync"

	"github.com/dsnet/compress/bzip2"
)

// bzip2Unit is the number of bytes of a bzip2 block for each step of the level
// digit.
const bzip2Unit = 100000

// errTrailing is the standard library's error for bytes after the end of a
// stream, which Decode ignores.
const errTrailing = stdlib.StructuralError("bad magic value in continuation file")

// bunzip2 decodes the bzip2 stream at the start of src into dst, which must
// have exactly the decoded length.
func bunzip2(dst, src []byte) (int, error) {
	n, err := readExactly(stdlib.NewReader(bytes.NewReader(src)), dst)
	if n == len(dst) && errors.Is(err, errTrailing) {
		return n, nil
	}
	return n, err
}

// bzip2Level is the level digit that Apple's tools write in the header of n
// bytes: the smallest one with blocks that hold them.
func bzip2Level(n int) int {
	return min(max(1, (n+bzip2Unit-1)/bzip2Unit), 9)
}

// bzip2Writers are the compressors by level, pooled because each keeps
// megabytes of tables.
var bzip2Writers [10]sync.Pool

// bzip2Encode appends src to dst as one bzip2 stream. Level 1 to 9 sets the
// block size; 0 selects bzip2Level.
func bzip2Encode(dst, src []byte, level int) ([]byte, error) {
	if level == 0 {
		level = bzip2Level(len(src))
	}
	if level < 1 || level > 9 {
		return nil, fmt.Errorf("level %d is not 1 to 9", level)
	}
	out := bytes.NewBuffer(dst)
	w, ok := bzip2Writers[level].Get().(*bzip2.Writer)
	if !ok {
		var err error
		if w, err = bzip2.NewWriter(nil, &bzip2.WriterConfig{Level: level}); err != nil {
			return nil, err
		}
	}
	if err := w.Reset(out); err != nil {
		return nil, err
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	bzip2Writers[level].Put(w)
	return out.Bytes(), nil
}
