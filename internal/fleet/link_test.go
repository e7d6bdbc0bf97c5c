package fleet

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testLink = Link{URLs: []string{"tls://10.0.0.1:4222", "tls://[::1]:4222"}, User: "mac", Seed: "SUSECRET", Pin: "cGlu"}

func TestParseLink(t *testing.T) {
	l, err := ParseLink("\n " + testLink.String() + "\r\n")
	require.NoError(t, err)
	assert.Equal(t, testLink, l)
	withFile := testLink
	withFile.Credentials = "/home/user/creds"
	l, err = ParseLink(withFile.String())
	require.NoError(t, err)
	assert.Equal(t, testLink, l, "a path of this machine is not in a join string")

	text := testLink.String()
	for name, damaged := range map[string]string{
		"empty":            "",
		"no prefix":        strings.TrimPrefix(text, joinPrefix),
		"a later version":  strings.Replace(text, "-1-", "-2-", 1),
		"cut off":          text[:len(text)-7],
		"only the prefix":  joinPrefix,
		"another alphabet": text + "+/",
		"a line break":     text[:40] + "\n" + text[40:],
		"no address":       Link{User: "mac", Seed: "SUSECRET"}.String(),
		"no key":           Link{URLs: testLink.URLs, User: "mac"}.String(),
	} {
		l, err := ParseLink(damaged)
		if name == "a line break" && err == nil { // base64 skips it
			assert.Equal(t, testLink, l)
			continue
		}
		if assert.ErrorContains(t, err, "reading the join string", name) {
			assert.NotContains(t, err.Error(), "SECRET", name)
			if len(damaged) > len(joinPrefix) {
				assert.NotContains(t, err.Error(), damaged[len(joinPrefix):], name)
			}
		}
	}
}

func FuzzParseLink(f *testing.F) {
	f.Add(testLink.String())
	f.Add(joinPrefix)
	f.Add(joinPrefix + "e30")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLink(text)
		if err != nil {
			return
		}
		again, err := ParseLink(l.String())
		require.NoError(t, err)
		assert.Equal(t, l, again)
	})
}

func TestPin(t *testing.T) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	pins := map[string]bool{}
	for serial := range int64(3) { // another certificate of the same key has the same pin
		c := &x509.Certificate{SerialNumber: big.NewInt(serial + 1)}
		data, err := x509.CreateCertificate(rand.Reader, c, c, public, key)
		require.NoError(t, err)
		parsed, err := x509.ParseCertificate(data)
		require.NoError(t, err)
		pins[Pin(parsed)] = true
	}
	assert.Len(t, pins, 1)
}

func TestErrorsHideThePassword(t *testing.T) {
	_, _, err := Connect(Link{URLs: []string{"nats://me:secret@127.0.0.1:1,nats://token@127.0.0.1:2"}}, false, nil)
	require.ErrorContains(t, err, "connecting to nats://127.0.0.1:1,nats://127.0.0.1:2: ")
	assert.NotContains(t, err.Error(), "secret")
}
