package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"dmgbench/internal/container/crypt/aescbc"
	"dmgbench/internal/units"
)

// cipherRequest is the bytes of a request, which stay in the cache as those of OpenSSL do.
const cipherRequest = 256 << 10

// cipherAims are the aims, by what the CPU has, of encrypting and decrypting.
var cipherAims = map[string][2]float64{"vaes-512": {10, 2}, "aes-ni": {5, 0.9}}

// cipherSubject is an implementation of AES with one of IVs, by their names.
type cipherSubject struct{ aes, ivs string }

func (s cipherSubject) String() string { return us + ", " + s.aes + ", IVs by " + s.ivs }

// cipherSubjects lists what to measure: every implementation of AES that has assembly, with the best one of IVs.
func cipherSubjects() (subjects []cipherSubject) {
	names, ivs := aescbc.Implementations(), aescbc.IVImplementations()
	if len(names) > 1 {
		names = names[:len(names)-1] // the standard library, which stands in where there is none
	}
	for _, name := range names {
		subjects = append(subjects, cipherSubject{name, ivs[0]})
	}
	return subjects
}

// cipherJob is one way of using the cipher.
type cipherJob struct {
	bits, unit int
	decrypt    bool
}

func (j cipherJob) String() string {
	verb := "encrypt"
	if j.decrypt {
		verb = "decrypt"
	}
	return fmt.Sprintf("AES-%d-CBC %s, blocks of %d", j.bits, verb, j.unit)
}

// ciphers compares AES-CBC, each block with an IV that is made for it, with what OpenSSL does under one IV.
func (b *formatBench) ciphers(ctx context.Context) error {
	openssl, missing := exec.LookPath(b.openssl)
	for _, bits := range []int{128, 256} {
		for _, unit := range []int{512, 4096} {
			for _, decrypt := range []bool{false, true} {
				j := cipherJob{bits, unit, decrypt}
				if missing == nil {
					if err := b.cipher(ctx, openssl, j); err != nil {
						return err
					}
					continue
				}
				b.report.Rows = append(b.report.Rows, row{Workers: 1, Op: j.String(), Subject: us, Baseline: "openssl", Quantity: quantityRate,
					Missing: "not measured: openssl is not installed (apt-get install openssl, brew install openssl)"})
			}
		}
	}
	return nil
}

// cipher measures one way, with every implementation of the CPU that has assembly: A-C-B-C-A, OpenSSL in the middle.
func (b *formatBench) cipher(ctx context.Context, openssl string, j cipherJob) error {
	subjects := cipherSubjects()
	ours, theirs := make([][]float64, len(subjects)), []float64{}
	for round := range b.pairs + 1 {
		sums := make([]load, len(subjects))
		turns := schedule(len(subjects), round)
		var other float64
		for i, at := range turns {
			if i == len(subjects) {
				var err error
				if other, err = opensslRate(ctx, openssl, j); err != nil {
					return err
				}
			}
			l, err := cipherTurns(subjects[at], j, b.turnTime)
			if err != nil {
				return err
			}
			sums[at] = sums[at].plus(l)
		}
		if round == 0 {
			continue
		}
		theirs = append(theirs, other)
		for i := range sums {
			ours[i] = append(ours[i], sums[i].rate())
		}
	}
	for i, subject := range subjects {
		aims := cipherAims[subject.aes]
		r := row{Workers: 1, Op: j.String(), Subject: subject.String(), Baseline: "openssl", Quantity: quantityRate, Aim: aims[0]}
		if j.decrypt {
			r.Aim = aims[1]
		}
		if err := r.compare(ours[i], theirs); err != nil {
			return err
		}
		b.report.Rows = append(b.report.Rows, r)
	}
	return nil
}

// cipherTurns encrypts or decrypts blocks of ever new numbers for so many seconds, and counts the processor time of the thread.
func cipherTurns(subject cipherSubject, j cipherJob, turn float64) (l load, err error) {
	key, err := aescbc.NewKeyFor(subject.aes, make([]byte, j.bits/8))
	if err != nil {
		return l, err
	}
	ivs, err := aescbc.NewIVKeyFor(subject.ivs, make([]byte, 20))
	if err != nil {
		return l, err
	}
	op := key.Encrypt
	if j.decrypt {
		op = key.Decrypt
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	data, iv := make([]byte, cipherRequest), make([]byte, cipherRequest/j.unit*aescbc.Size)
	number := uint32(0)
	for began := threadCPU(); l.seconds < turn; l.seconds = (threadCPU() - began).Seconds() {
		for range 16 {
			ivs.Fill(iv, number)
			op(data, data, iv, j.unit)
			number += uint32(cipherRequest / j.unit)
		}
		l.bytes += 16 * cipherRequest
	}
	return l, nil
}

// opensslRate asks OpenSSL for its speed in bytes per second of processor time, over a second.
func opensslRate(ctx context.Context, program string, j cipherJob) (float64, error) {
	args := []string{"speed", "-mr", "-evp", fmt.Sprintf("aes-%d-cbc", j.bits), "-bytes", strconv.Itoa(j.unit), "-seconds", "1"}
	if j.decrypt {
		args = append(args, "-decrypt")
	}
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return 0, fmt.Errorf("running openssl speed: %w", err)
	}
	return parseOpenSSL(string(out))
}

// parseOpenSSL finds the rate in what openssl speed -mr prints, such as "+F:25:AES-256-CBC:1064956696.77".
func parseOpenSSL(out string) (float64, error) {
	for line := range strings.Lines(out) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); fields[0] == "+F" {
			v, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			if err == nil && v > 0 {
				return v, nil
			}
		}
	}
	return 0, fmt.Errorf("reading what openssl speed says: no rate in %.100q", out)
}

// perCore is a rate of processor time.
func perCore(bytes int64, seconds float64) string {
	return units.Rate(float64(bytes) / seconds).Human()
}
