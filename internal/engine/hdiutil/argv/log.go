package argv

import (
	"strconv"
	"time"
)

// Log is log(1), which reads the system's log.
const Log Tool = "log"

// apfsTrims are the messages of APFS about what it trims when a volume is mounted, and about a backing store that it
// makes sparse. They begin with the kernel function's name: spaceman_scan_free_blocks up to macOS 26,
// spaceman_trim_free_blocks in APFS 3277 of macOS 27 (symbols of both kexts).
const apfsTrims = `senderImagePath CONTAINS "apfs" AND (eventMessage CONTAINS "spaceman_scan_free_blocks"` +
	` OR eventMessage CONTAINS "spaceman_trim_free_blocks" OR eventMessage CONTAINS "set_backingstore")`

// TrimLog is `log show` of what APFS has said of trimming, a JSON object a line.
type TrimLog struct {
	Since time.Time // to the second: what lies before is left out
}

// Command builds the command. The moment is given in seconds since 1970, which no time zone changes.
func (c TrimLog) Command() (Command, error) {
	return Command{Tool: Log, Verb: "show", Args: []string{"show", "--style", "ndjson",
		"--start", "@" + strconv.FormatInt(c.Since.Unix(), 10), "--predicate", apfsTrims}}, nil
}
