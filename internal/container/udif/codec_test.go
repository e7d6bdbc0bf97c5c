package udif

import (
	"errors"

	"dmgbench/internal/container/codec"
)

// testCodec is what the tests read and write with: the codecs of the project, as package container brings them.
type testCodec struct{}

func (testCodec) Decode(id uint32, dst, src []byte) (int, error) {
	return codec.Decode(codec.ID(id), dst, src)
}

func (testCodec) Encode(id uint32, dst, src []byte, level int) ([]byte, error) {
	out, err := codec.Encode(codec.ID(id), dst, src, level)
	if errors.Is(err, codec.ErrIncompressible) {
		err = ErrIncompressible
	}
	return out, err
}
