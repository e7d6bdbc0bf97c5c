// Package plan reads plans: what images to make, what to do to them, and what
// the author published.
//
// A plan is one TOML file. [Parse] reads it in three passes: the text becomes a tree that keeps positions (tree.go), the
// rows of the tables of keys (key.go) decode the tree into a [Plan], and the plan is checked as a whole (check.go). All
// errors are reported at once, each with file, line and column.
//
// The language is declared in registries: value types (kind.go), settings and axes (settings.go), kinds of step
// (stepkinds.go), quantities (quantity.go), tests of claims (claim.go). Decoder, hints, canonical form, JSON Schema and
// docs/plan-language.md all derive from their rows.
package plan

import (
	"time"

	"dmgbench/internal/units"
)

// Schema is the version of the plan language that this program reads.
const Schema = 1

// Plan is one plan as executed: defaults filled in, matrix not yet expanded.
type Plan struct {
	// Name is the file's name without ".toml"; it names run folders.
	Name    string
	Title   string
	Summary string
	Source  *Source
	// Defaults are the values of [image], [io] and [stream]; an axis or a case overrides single keys.
	Defaults Settings
	Axes     []Axis
	Exclude  []Selector
	Extra    []Selector // [[case]]: combinations in addition to the product
	Manual   []Manual
	Files    []FileSet
	Protocol []Block
	Run      RunOptions
	// Inputs are files the user has to bring with --input NAME=PATH.
	Inputs []Input
	// Choices are what the source leaves open and this plan chose; each is a deviation.
	Choices   []string
	Published []Published
	Claims    []Claim
	Fits      []Fit
	Relations []Relation
	Tables    []Table
	// Changes are how this plan deviates from the published one; [Plan.Apply] makes them.
	Changes []Change
}

// Source names where the protocol and the figures were published.
type Source struct {
	Title, Author, URL string
	Date               time.Time // day only
	On                 On
}

// On is the machine, system and tool that figures were taken with.
type On struct {
	Machine, OS, Tool string
	Date              time.Time
}

// Settings are the keys that make a case. Every key is a possible axis.
// The zero value of a field means "not set" before defaults are filled in.
type Settings struct {
	Target      string      // image | directory
	Place       string      // named folder; "" is the run folder
	Format      string      // UDRW, UDSB, UDSP, ASIF, …
	ConvertTo   string      // what convert steps without a format make; "": each has one
	Encryption  string      // none | AES-128 | AES-256
	Filesystems []string    // preference: the first one that the engine can make is used
	Size        units.Bytes // nominal size of the image
	BandSize    units.Bytes // 0: the tool's default
	VolumeName  string      // label of the file system
	Backend     string      // auto | hdiutil | diskutil
	ServedBy    string      // auto | kernel | helper
	Preallocate bool        // reserve a file's space before its timed write
	ManyBands   bool        // allow_many_bands: silences the warning past 100,000
	Files       string      // the file set that steps use unless they name one
	Workers     int         // goroutines doing file I/O
	Sync        string      // none | fsync | full
	Cache       string      // direct | buffered | cold
	Block       units.Bytes // bytes a call; 0: one call a file up to 1 GiB
	QoS         string      // default | utility | background
	Codec       string      // stream: zstd | s2 | gzip | lzfse
	Level       int         // stream: codec's own level, 0 its default
	Threads     int         // stream: compressing threads
	Manual      []KeyValue  // values of manual axes, in plan order
}

// KeyValue is one key of a case with its value as the plan writes it.
type KeyValue struct{ Key, Value string }

// Axis is one key of the matrix with its values, in plan order.
type Axis struct {
	Key    string
	Values []string
}

// Manual is an axis that the user sets (number of virtual cores): the run pauses before each value.
type Manual struct {
	Name         string
	Values       []string
	Instructions string // what to do, with {value}
	Check        string // host fact that must equal the value on resume: "cpus", "memory", "none"
}

// Input is a file that the user brings.
type Input struct {
	Name, About string
	Size        units.Bytes // expected, 0 if any will do
	Optional    bool        // without it a generated file of Size is used, a deviation

	// PublishedSize is the size of the author's file where Size is another one, else 0: printed times belong to it.
	PublishedSize units.Bytes
}

// FileSet is a population of files.
type FileSet struct {
	Name  string
	Parts []FilePart
	Order string // shuffled (within each set) | as-listed | shuffled-all
	Data  string // random | zero | mixed | text
	// Compressible is the share of each 4 KiB that is filled with zeros (data = "mixed").
	Compressible units.Share
}

// FilePart is explicit sizes times sets, or Count draws from a range times sets.
type FilePart struct {
	Sizes  []units.Bytes
	Low    units.Bytes // range draws: log-uniform in [Low, High]
	High   units.Bytes
	Count  int
	Sets   int
	Spread string // of draws: "log" (default) or "linear"
}

// Block is one [[protocol]] table: steps for the cases that When selects.
type Block struct {
	When  Selector
	Steps []Step
}

// RunOptions are the table [run]: how the plan is run.
type RunOptions struct {
	Rounds     int  // with Auto the smallest number: that of the first look
	Auto       bool // rounds are added until every interval is as narrow as Precision
	MaxRounds  int  // limit of Auto, as are the next two, which 0 turns off
	MaxTime    units.Duration
	MaxWritten units.Bytes
	Baseline   bool // a native directory case beside the images of each place
	Canary     bool // a short native write and read before each case
	Seed       uint64
	Require    []KeyValue // host facts: power = "ac" …
	Estimator  string     // headline: aggregate | mean | median | trimmed | theil-sen | least-squares | weighted
	// FitsIn is the share of the volume that live files may fill.
	FitsIn units.Share
	// Precision is the target half-width of the headline's interval as a share of it; 0: none.
	Precision units.Share
	// Precondition is [Steady] if places are written to before the rounds until their rate is steady, else "".
	Precondition  string
	SteadyWindow  int         // samples over which the slope is computed
	SteadyLimit   units.Share // slope by sample as a share of the mean, below which the rate is steady
	SteadyFile    units.Bytes // size of a sample
	SteadyTime    units.Duration
	SteadyWritten units.Bytes
}

// Published is one published figure.
type Published struct {
	Quantity  Quantity
	Where     Selector
	Statistic string // as the source names it, "" if it names none
	Value     Figure
	On        On // where it differs from that of the source
	Note      string
	// Unmeasured figures belong to no case: they serve claims about published figures.
	Unmeasured bool
}

// Figure is a number as printed: exact, about, below, above or a range, in base units.
type Figure struct {
	Kind      string  // is | about | below | above | range
	Low, High float64 // equal unless Kind is range
	Unit      string  // B/s | B | s | 1
	Text      string  // as written in the plan
}

// Operand is one side of a claim: a quantity of a selection, measured or published, or a constant.
type Operand struct {
	Quantity  Quantity
	Where     Selector
	Statistic string // overrides the headline estimator
	Published bool   // the published figure, not the measured one
	On        On     // with Published: the figure that was taken there; zero: that of the source
	Constant  *Figure
}

// Claim is one sentence that a run can confirm or refute.
type Claim struct {
	ID    string // stable; made from the sentence when not given
	Says  string
	By    string // author | us
	Scope string // apple | any
	Note  string
	// Require makes a comparison of runs fail where the verdict is the opposite.
	Require bool
	Assert  Assert
}

// Assert is the test inside a claim. Kind decides which fields matter:
//
//	ratio       Left / Right satisfies Bound
//	difference  Left − Right satisfies Bound
//	equal       Left and Right differ by at most Within
//	order       Of is in strictly falling order (or rising, if Direction is that), neighbours further apart than Within
//	rank        Left has Rank among Of (1 = largest)
//	extreme     along axis Along, Left is Direction ("largest" or "smallest") At
//	trend       along Along (an axis, "cycle" or "phase"), Left is Direction: rising, falling or constant Within
//	spread      over Along, (max − min) / mean of Left satisfies Bound
//	coefficient coefficient Coefficient of fit Fit satisfies Bound
//	prediction  Left / (fit Fit predicted at At) satisfies Bound
//	outcome     the steps Where selects ended as Outcome: ok or fail
//	bound       Left itself satisfies Bound
//	all, any    of Parts
type Assert struct {
	Kind        string
	Left, Right Operand
	Of          []Operand
	Bound       Bound
	Within      units.Share
	Along       string
	Direction   string
	At          []string
	Rank        int
	Fit         string
	Coefficient string
	Step        string // outcome: the do of the step
	Where       Selector
	Outcome     string
	Parts       []Assert
}

// Bound is an accepted interval, either end may be open (±Inf).
type Bound struct {
	Low, High         float64
	LowOpen, HighOpen bool // strict inequality
	Unit              string
	Text              string
}

// Fit is a model of one quantity along an axis.
type Fit struct {
	Name     string
	Quantity Quantity
	Where    Selector
	Along    string // numeric axis: threads, workers, band_size, file_size, cycle, a manual axis
	Points   []string
	Model    string // line | power | two-lines
	Predict  []string
	// Published are coefficients as printed: intercept, slope, factor, exponent, r2.
	Published []Coefficient
}

// Coefficient is one printed coefficient of a fit.
type Coefficient struct {
	Name  string
	Value float64
	Text  string
}

// Relation compares one quantity with another over cases.
type Relation struct {
	Name string
	Says string
	X, Y Operand
	Over []Selector // one point each, in plan order
}

// Step is one action of the protocol. Do decides which fields matter.
type Step struct {
	Do     string
	Phase  string
	Expect string // ok | fail
	// On names the container that the step acts on: "" is the case's own, else the As of an earlier step.
	On string
	// As names the container that convert, transfer and damage make.
	As string

	Files   string // write: file set; "" is the case's
	Batch   string // read, verify, delete: last | all
	Order   string // read: same-as-written | shuffled | as-listed
	Workers int    // overrides of the case, 0 or "" when not set
	Sync    string
	Cache   string
	Block   units.Bytes

	Mount, Verify, ReadOnly *bool          // attach
	Times                   int            // remount, repeat
	AtLeast                 units.Duration // settle; remount waits this long each time
	UntilStable             bool           // settle: until allocated size stops changing
	AtMost                  units.Duration // settle
	Dir                     string         // mkdir

	All      bool        // delete
	LastSets int         // delete
	Largest  int         // delete: N largest of the last batch
	Every    bool        // delete: every other file
	Share    units.Share // delete: random share

	Battery    string      // compact: refuse | allow
	Size       units.Bytes // resize
	Format     string      // convert; "" is the case's
	Encryption string      // convert
	BandSize   units.Bytes // convert
	Place      string      // transfer, convert
	What       string      // check: container | volume
	Repair     bool        // check
	Kind       string      // damage: header | band-missing | table | truncated | volume
	Attr       string      // xattr: name
	Action     string      // xattr: list | remove | set
	Value      string      // xattr set

	From      string // copy, stream: input name or file on the volume
	To        string // copy, stream: file on the volume
	Direction string // stream: compress | decompress
	Codec     string // stream: overrides of the case
	Level     int
	Threads   int

	Message string // pause
	Steps   []Step // repeat, parallel

	// Position in the text of the plan, for messages.
	Line, Column int
}
