package broker

import (
	"fmt"
	"io"
	"log"
	"strings"
)

// logger writes the warnings and errors of nats-server.
type logger struct {
	*log.Logger
	fatal chan error // gets the first error for which the server does not start
}

func newLogger(w io.Writer) logger {
	if w == nil {
		w = io.Discard
	}
	return logger{log.New(w, "", 0), make(chan error, 1)}
}

// Fatalf does not end the process, as the caller of Serve gets the error.
func (l logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Errorf(format, v...):
	default:
	}
}

// Errorf adds what to do when a stream could not be written: it takes nothing more
// until the server starts again.
func (l logger) Errorf(format string, v ...any) {
	line := fmt.Sprintf(format, v...)
	if strings.Contains(line, "critical write error") {
		line += " (make room on the disk, then start the server again)"
	}
	l.Print(line)
}

func (l logger) Warnf(format string, v ...any) { l.Printf(format, v...) }
func (logger) Noticef(string, ...any)          {}
func (logger) Debugf(string, ...any)           {}
func (logger) Tracef(string, ...any)           {}
