package broker

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"strings"
	"sync/atomic"
	"time"
)

// logger writes the warnings and errors of nats-server.
type logger struct {
	*log.Logger
	fatal   atomic.Value // a string: the first reason why the server does not start
	failure atomic.Value // a string: the first reason why it could not write
	refusal atomic.Int64 // when a line about one was printed, in seconds
}

func newLogger(w io.Writer) *logger {
	return &logger{Logger: log.New(cmp.Or(w, io.Discard), "", 0)}
}

// Fatalf does not end the process, as the caller of Serve gets the error. What
// follows the first one is a consequence of it.
func (l *logger) Fatalf(format string, v ...any) {
	l.fatal.CompareAndSwap(nil, fmt.Sprintf(format, v...))
}

// quietTime is the least time between two lines about a key that is refused.
const quietTime = time.Minute

// Errorf notices that a stream could not be written, which takes nothing more until
// the server starts again.
func (l *logger) Errorf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	if strings.Contains(line, "authentication error") { // an agent that is refused goes on trying
		now, last := time.Now().Unix(), l.refusal.Load()
		if now-last < int64(quietTime/time.Second) || !l.refusal.CompareAndSwap(last, now) {
			return
		}
	}
	l.Print(line)
	if strings.Contains(line, "ritical write error") || strings.Contains(line, "will be DISABLED") {
		reason := line[strings.LastIndexByte(line, ':')+1:]
		if l.failure.CompareAndSwap(nil, strings.TrimSpace(reason)) {
			l.Print("nothing more is stored until the disk has room; the server then starts again")
		}
	}
}

// Warnf writes a warning. What the server reports besides is for its developers.
func (l *logger) Warnf(format string, v ...any) { l.Printf(format, v...) }
func (*logger) Noticef(string, ...any)          {}
func (*logger) Debugf(string, ...any)           {}
func (*logger) Tracef(string, ...any)           {}
