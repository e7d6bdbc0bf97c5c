package broker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"dmgbench/internal/fleet"
)

func serveTest(t *testing.T, folder string, o Options) *Server {
	t.Helper()
	if o.Limits == (fleet.Limits{}) {
		o.Limits = fleet.Limits{Queue: 16 << 20, Results: 16 << 20, Runs: 8 << 20, Replicas: 1}
	}
	s, err := Serve(folder, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestSmoke(t *testing.T) {
	s := serveTest(t, t.TempDir(), Options{})
	ctx := context.Background()
	l, err := s.AddMachine(ctx, "mac")
	require.NoError(t, err)
	nc, js, err := fleet.Connect(l, false, nil)
	require.NoError(t, err)
	defer nc.Close()
	o, err := js.ObjectStore(ctx, fleet.Bucket("mac"))
	require.NoError(t, err)
	_, err = o.PutBytes(ctx, "x", make([]byte, 1<<20))
	require.NoError(t, err)
	cc, _, err := fleet.Connect(s.Control(), false, nil)
	require.NoError(t, err)
	defer cc.Close()
	join, err := fleet.Request(ctx, cc, fleet.Add, "mac2")
	require.NoError(t, err)
	_, err = fleet.ParseLink(join)
	require.NoError(t, err)
}
