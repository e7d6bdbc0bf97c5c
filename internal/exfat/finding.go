package exfat

import "fmt"

// Kind says what is wrong.
type Kind string

// What Check finds. Those marked R are put right by CheckOptions.Repair.
const (
	BootMain       Kind = "main boot region"            // R: from the backup
	BootBackup     Kind = "backup boot region"          // R: from the main one
	DirtyFlag      Kind = "dirty flag"                  // R: once nothing else is wrong
	MediaFailure   Kind = "media failure flag"          //
	FATHead        Kind = "head of the FAT"             // R
	Upcase         Kind = "up-case table"               //
	Bitmap         Kind = "allocation bitmap"           // missing or unreadable: nothing else about it is checked
	BitmapLost     Kind = "lost clusters"               // R: freed
	BitmapMissing  Kind = "used clusters marked free"   // R: marked
	CrossLink      Kind = "cluster with two owners"     // R, for two names of one file: the one given last stays
	ChainShort     Kind = "chain ends too early"        // R: the file is cut
	ChainLong      Kind = "chain is longer than needed" // R: cut; the rest is lost clusters
	ChainCycle     Kind = "chain is a cycle"            // R: the file is cut
	ChainBad       Kind = "chain leaves the volume"     // R: the file is cut
	EntryStructure Kind = "entry set"                   //
	EntryChecksum  Kind = "checksum of an entry set"    //
	NameInvalid    Kind = "forbidden name"              //
	NameHash       Kind = "hash of a name"              // R
	NameDuplicate  Kind = "name used twice"             //
	SizeInvalid    Kind = "impossible size"             // R: set to what the clusters hold
)

// maxFindings bounds the memory that a report takes.
const maxFindings = 10_000

// Finding is one thing that is wrong.
type Finding struct {
	Kind     Kind
	Path     string // of the file or directory concerned, if there is one
	Cluster  uint32 // the first cluster concerned, if there is one
	Count    uint32 // number of clusters concerned
	Detail   string
	Repaired bool
	fix      func() error
}

// String is one line for people.
func (f Finding) String() string {
	s := string(f.Kind)
	if f.Path != "" {
		s += fmt.Sprintf(" of %q", f.Path)
	}
	if f.Count > 0 {
		s += fmt.Sprintf(": %d from cluster %d", f.Count, f.Cluster)
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	if f.Repaired {
		s += " (repaired)"
	}
	return s
}

// Report is what Check found.
type Report struct {
	Findings    []Finding
	More        int // findings beyond the 10,000 that are kept
	Files, Dirs int
	Used        int64 // bytes in clusters that something owns
	Free        int64 // bytes in the others
}

// Clean says that nothing is wrong, or nothing any more.
func (r *Report) Clean() bool {
	for _, f := range r.Findings {
		if !f.Repaired {
			return false
		}
	}
	return r.More == 0
}

func (r *Report) add(f Finding) {
	if len(r.Findings) == maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, f)
}
