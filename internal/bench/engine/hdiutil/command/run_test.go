//go:build unix

package command_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/bench/engine/hdiutil/command"
)

// TestMain is also the tool that the tests run.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "tool" {
		os.Exit(tool(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func tool(args []string) int {
	switch args[0] {
	case "say":
		fmt.Print("out")
		fmt.Fprint(os.Stderr, "err")
		return 35
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "env":
		fmt.Print(strings.Join(os.Environ(), "\n"))
	case "pid":
		sid, _, _ := syscall.Syscall(syscall.SYS_GETSID, 0, 0, 0)
		fmt.Print(os.Getpid() == int(sid), os.Getpid() == syscall.Getpgrp())
	case "flood":
		chunk := strings.Repeat("x", 1<<20)
		fmt.Print("start")
		for range 20 {
			fmt.Print(chunk)
		}
		fmt.Print("end")
	case "alone":
		if os.Mkdir(args[1], 0o700) != nil {
			return 1
		}
		_, _ = os.ReadDir(os.TempDir())
		_ = exec.Command(os.Args[0], "tool", "say").Run() // some time passes
		_ = os.Remove(args[1])
	case "hang": // deaf to the polite end; the file says that it is so
		signal.Ignore(syscall.SIGTERM)
		_ = os.WriteFile(args[1], nil, 0o600)
		wait()
	case "polite":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		_ = os.WriteFile(args[1], nil, 0o600)
		<-c
		fmt.Print("good-bye")
	case "helper": // leaves a process behind that keeps the output open
		c := exec.Command(os.Args[0], "tool", "orphan", args[1])
		c.Stdout = os.Stdout
		if c.Start() != nil {
			return 1
		}
		fmt.Print(c.Process.Pid)
	case "orphan":
		if f, err := os.Open(args[1]); err == nil { // until the test opens the other end and closes it
			_, _ = bufio.NewReader(f).ReadByte()
		}
	}
	return 0
}

func wait() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	<-c
}

func job(t *testing.T, args ...string) command.Job {
	return command.Job{Path: self(t), Args: append([]string{"tool"}, args...), Deadline: time.Minute, Grace: time.Minute, Dir: t.TempDir()}
}

func self(t *testing.T) string {
	exe, err := os.Executable()
	require.NoError(t, err)
	return exe
}

func TestOutputsAndStatus(t *testing.T) {
	j := job(t, "say")
	r, err := command.Run(t.Context(), j)
	require.NoError(t, err)
	assert.Equal(t, "out|err|35", fmt.Sprintf("%s|%s|%d", r.Stdout, r.Stderr, r.Status))
	assert.Positive(t, r.Duration)
	left, err := os.ReadDir(j.Dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestInput(t *testing.T) {
	for _, input := range []string{"", "no newline", "line\n", "a\x00b", strings.Repeat("x", 4096)} {
		j := job(t, "cat")
		j.Input = []byte(input)
		r, err := command.Run(t.Context(), j)
		require.NoError(t, err)
		assert.Equal(t, input, string(r.Stdout))
	}
	j := job(t, "cat")
	r, err := command.Run(t.Context(), j)
	require.NoError(t, err)
	assert.Empty(t, r.Stdout, "the null device")
}

func TestEnvironment(t *testing.T) {
	t.Setenv("DMGBENCH_PASSPHRASE", "secret")
	t.Setenv("com_apple_hdid_debug", "1")
	t.Setenv("LANG", "de_DE.UTF-8")
	t.Setenv("HOME", "/home/x")
	r, err := command.Run(t.Context(), job(t, "env"))
	require.NoError(t, err)
	env := strings.Split(string(r.Stdout), "\n")
	assert.Contains(t, env, "LC_ALL=C")
	assert.Contains(t, env, "LANG=C")
	assert.Contains(t, env, "HOME=/home/x")
	assert.NotContains(t, string(r.Stdout), "secret")
	assert.NotContains(t, string(r.Stdout), "com_apple")
	assert.NotContains(t, string(r.Stdout), "de_DE")
}

func TestOwnSession(t *testing.T) {
	r, err := command.Run(t.Context(), job(t, "pid"))
	require.NoError(t, err)
	assert.Equal(t, "true true", string(r.Stdout))
}

// A process that outlives the tool and keeps its output open does not keep us.
func TestHelperWithTheOutputDoesNotBlock(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	r, err := command.Run(t.Context(), job(t, "helper", fifo))
	require.NoError(t, err)
	assert.NotEmpty(t, r.Stdout)
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits for the helper, which is still there
	require.NoError(t, err)
	f.Close()
}

func TestDeadline(t *testing.T) {
	for _, kind := range []string{"polite", "hang"} {
		t.Run(kind, func(t *testing.T) {
			ready := filepath.Join(t.TempDir(), "ready")
			j := job(t, kind, ready)
			j.Deadline, j.Grace = 500*time.Millisecond, time.Minute
			if kind == "hang" {
				j.Grace = 50 * time.Millisecond
			}
			r, err := command.Run(t.Context(), j)
			require.ErrorIs(t, err, command.ErrDeadline)
			if kind == "polite" && exists(ready) {
				assert.Equal(t, "good-bye", string(r.Stdout))
			}
			if kind == "hang" {
				assert.Equal(t, -1, r.Status)
			}
		})
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ready := filepath.Join(t.TempDir(), "ready")
	require.NoError(t, syscall.Mkfifo(ready, 0o600))
	go func() { // the tool's write to the FIFO meets this read
		if f, err := os.Open(ready); err == nil {
			f.Close()
		}
		cancel()
	}()
	j := job(t, "hang", ready)
	j.Grace = 20 * time.Millisecond
	_, err := command.Run(ctx, j)
	require.ErrorIs(t, err, context.Canceled)
	_, err = command.Run(ctx, j)
	require.ErrorIs(t, err, context.Canceled)
}

func TestMissing(t *testing.T) {
	j := job(t, "say")
	j.Path = "/nonexistent/hdiutil"
	_, err := command.Run(t.Context(), j)
	require.ErrorIs(t, err, command.ErrMissing)
	j.Path = t.TempDir()
	_, err = command.Run(t.Context(), j)
	require.ErrorIs(t, err, command.ErrMissing)
	j.Path = "hdiutil"
	_, err = command.Run(t.Context(), j)
	require.ErrorContains(t, err, "absolute")
}

func TestFloodIsCut(t *testing.T) {
	r, err := command.Run(t.Context(), job(t, "flood"))
	require.NoError(t, err)
	assert.Less(t, len(r.Stdout), 17<<20)
	assert.True(t, strings.HasPrefix(string(r.Stdout), "start"))
}

// Commands of this process run one after the other: each finds the file of none other.
func TestOneAtATime(t *testing.T) {
	alone := filepath.Join(t.TempDir(), "alone")
	var wg sync.WaitGroup
	for range 6 {
		j := job(t, "alone", alone)
		wg.Go(func() {
			r, err := command.Run(t.Context(), j)
			assert.NoError(t, err)
			assert.Zero(t, r.Status)
		})
	}
	wg.Wait()
}
