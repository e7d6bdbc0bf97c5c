package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"dmgbench/internal/hostio"
)

// caller is who called sudo, if this process is root by it.
func (a *app) caller() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	u, err1 := strconv.ParseUint(a.env["SUDO_UID"], 10, 31)
	g, err2 := strconv.ParseUint(a.env["SUDO_GID"], 10, 31)
	return int(u), int(g), err1 == nil && err2 == nil && u != 0
}

// leaves notes what the command makes, before it does: under sudo it belongs, in the end, to the caller, with the folders that were made
// above it, if the folder that it lies in is the caller's. Else the next command without sudo could neither read nor delete it.
func (a *app) leaves(path string) {
	uid, gid, ok := a.caller()
	if !ok || path == "" {
		return
	}
	top, err := filepath.Abs(path)
	if err != nil {
		return
	}
	for {
		above := filepath.Dir(top)
		if _, err := os.Stat(above); err == nil || above == top {
			break
		}
		top = above
	}
	if slices.Contains(a.given, top) {
		return
	}
	a.given = append(a.given, top)
	a.atEnd = append(a.atEnd, func() error { return hostio.ChownTree(top, uid, gid) })
}

// owner says in doctor whom what a run leaves belongs to.
func (a *app) owner() string {
	uid, _, ok := a.caller()
	switch {
	case ok:
		return fmt.Sprintf("root by sudo: what is made in folders of user %d, who called it, belongs to that user in the end", uid)
	case os.Geteuid() == 0:
		return "root, not by sudo: what is made belongs to root"
	}
	return fmt.Sprintf("%d, not root", os.Geteuid())
}

// console says in doctor whether somebody is logged in at the screen of a Mac, whose services then do work of their own; "" elsewhere.
func console() string {
	fi, err := os.Stat("/dev/console")
	if runtime.GOOS != "darwin" || err != nil {
		return ""
	}
	if uid, ok := hostio.Owner(fi); ok && uid == 0 {
		return "nobody is logged in: published figures are from Macs where somebody was"
	}
	return "somebody is logged in"
}
