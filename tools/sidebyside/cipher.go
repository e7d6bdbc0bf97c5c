package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"dmgbench/internal/container/crypt/aescbc"
)

const (
	cipherRequest = 256 << 10 // bytes per call, which stay in the CPU's cache as OpenSSL's do
	cipherSeconds = 0.06      // processor time of one turn
)

// cipherAims are the least ratios to OpenSSL of encrypting and decrypting, by
// implementation.
var cipherAims = map[string][2]float64{"vaes-512": {10, 2}, "aes-ni": {5, 0.9}}

// cipherJob is one way of using the cipher.
type cipherJob struct {
	bits, unit int // of the key; bytes per IV
	decrypt    bool
}

func (j cipherJob) String() string {
	verb := "encrypt"
	if j.decrypt {
		verb = "decrypt"
	}
	return fmt.Sprintf("AES-%d-CBC %s, blocks of %d", j.bits, verb, j.unit)
}

// compareCiphers compares AES-CBC, with an IV made for each block, with what
// OpenSSL does under one IV.
func (b *formatBench) compareCiphers(ctx context.Context) error {
	_, missing := exec.LookPath("openssl")
	for _, bits := range []int{128, 256} {
		for _, unit := range []int{512, 4096} {
			for _, decrypt := range []bool{false, true} {
				j := cipherJob{bits, unit, decrypt}
				if missing != nil {
					b.report.rows = append(b.report.rows, row{workers: 1, op: j.String(), subject: "dmgbench",
						baseline: "openssl", quantity: quantityRate, missing: "not measured: openssl is not installed"})
					continue
				}
				if err := b.compareCipher(ctx, j); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compareCipher measures every assembly implementation that the CPU has, with
// the best one of IVs: A-C-B-C-A, OpenSSL in the middle.
func (b *formatBench) compareCipher(ctx context.Context, j cipherJob) error {
	names, iv := aescbc.Implementations(), aescbc.IVImplementations()[0]
	if len(names) > 1 {
		names = names[:len(names)-1] // the last is the standard library's
	}
	ours, theirs := make([][]float64, len(names)), []float64{}
	for round := range b.pairs + 1 {
		sums := make([]load, len(names))
		var openssl float64
		for turn, i := range schedule(len(names), round) {
			var err error
			if turn == len(names) {
				if openssl, err = opensslRate(ctx, j); err != nil {
					return err
				}
			}
			l, err := runCipher(names[i], iv, j, cipherSeconds)
			if err != nil {
				return err
			}
			sums[i] = sums[i].plus(l)
		}
		for i := range sums {
			if round > 0 {
				ours[i] = append(ours[i], sums[i].rate())
			}
		}
		if round > 0 {
			theirs = append(theirs, openssl)
		}
	}
	for i, name := range names {
		r := row{workers: 1, op: j.String(), subject: name + ", IVs by " + iv, baseline: "openssl", quantity: quantityRate,
			aim: cipherAims[name][0]}
		if j.decrypt {
			r.aim = cipherAims[name][1]
		}
		if err := r.compare(ours[i], theirs); err != nil {
			return err
		}
		b.report.rows = append(b.report.rows, r)
	}
	return nil
}

// runCipher encrypts or decrypts blocks of increasing numbers for so many
// seconds of processor time of its thread.
func runCipher(aes, iv string, j cipherJob, seconds float64) (l load, err error) {
	key, err := aescbc.NewKeyFor(aes, make([]byte, j.bits/8))
	if err != nil {
		return l, err
	}
	ivKey, err := aescbc.NewIVKeyFor(iv, make([]byte, 20))
	if err != nil {
		return l, err
	}
	transform := key.Encrypt
	if j.decrypt {
		transform = key.Decrypt
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	data, ivs := make([]byte, cipherRequest), make([]byte, cipherRequest/j.unit*aescbc.Size)
	number := uint32(0)
	for start := threadCPU(); l.seconds < seconds; l.seconds = (threadCPU() - start).Seconds() {
		for range 16 {
			ivKey.Fill(ivs, number)
			transform(data, data, ivs, j.unit)
			number += uint32(cipherRequest / j.unit)
		}
		l.bytes += 16 * cipherRequest
	}
	return l, nil
}

// threadCPU is the processor time of the calling thread, 0 if the system does
// not report it.
func threadCPU() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// opensslRate measures OpenSSL for a second: bytes per second of processor
// time.
func opensslRate(ctx context.Context, j cipherJob) (float64, error) {
	args := []string{"speed", "-mr", "-evp", fmt.Sprintf("aes-%d-cbc", j.bits), "-bytes", strconv.Itoa(j.unit), "-seconds", "1"}
	if j.decrypt {
		args = append(args, "-decrypt")
	}
	out, err := exec.CommandContext(ctx, "openssl", args...).Output()
	if err != nil {
		return 0, fmt.Errorf("running openssl speed: %w", err)
	}
	return parseOpenSSL(string(out))
}

// parseOpenSSL finds the rate in the output of openssl speed -mr, such as
// "+F:25:AES-256-CBC:1064956696.77".
func parseOpenSSL(out string) (float64, error) {
	for line := range strings.Lines(out) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); fields[0] == "+F" {
			v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err == nil && v > 0 {
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("reading the output of openssl speed: no rate in %.100q", out)
}
