// Package plan reads plans: what images to make, what to do to them, and what
// the author published.
//
// A plan is one TOML file. [Parse] reads it in three passes: the text becomes a
// tree that keeps positions (tree.go), the rows of the tables of keys (key.go)
// decode the tree into a [Plan], and the plan is checked as a whole (check.go).
// All errors are reported at once, each with file, line and column.
//
// The language is declared in registries: value types (kind.go), settings and
// axes (settings.go), kinds of step (stepkinds.go), quantities (quantity.go),
// tests of claims (claim.go). Decoder, hints, canonical form, JSON Schema and
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
	// Defaults are the values of [image], [io] and [stream]; an axis or a case
	// overrides single keys.
	Defaults Settings
	Axes     []Axis
	Exclude  []Selector
	// [[case]]: combinations in addition to the product
	Extra    []Selector
	Manual   []Manual
	Files    []FileSet
	Protocol []Block
	Run      RunOptions
	// Inputs are files the user has to bring with --input NAME=PATH.
	Inputs []Input
	// Choices are what the source leaves open and this plan chose; each is a
	// deviation.
	Choices   []string
	Published []Published
	Claims    []Claim
	Fits      []Fit
	Relations []Relation
	Tables    []Table
	// Changes are how this plan deviates from the published one; [Plan.Apply]
	// makes them.
	Changes []Change
}

// Source names where the protocol and the figures were published.
type Source struct {
	Title, Author, URL string
	// Date: day only
	Date time.Time
	On   On
}

// On is the machine, system and tool that figures were taken with.
type On struct {
	Machine, OS, Tool string
	Date              time.Time
}

// Settings are the keys that make a case. Every key is a possible axis.
// The zero value of a field means "not set" before defaults are filled in.
type Settings struct {
	// Target: image | directory
	Target string
	// Place: named folder; "" is the run folder
	Place string
	// UDRW, UDSB, UDSP, ASIF, …
	Format string
	// ConvertTo: what convert steps without a format make; "": each has one
	ConvertTo string
	// Encryption: none | AES-128 | AES-256
	Encryption string
	// Filesystems: preference: the first one that the engine can make is used
	Filesystems []string
	// Size: nominal size of the image
	Size units.Bytes
	// BandSize: 0: the tool's default
	BandSize units.Bytes
	// VolumeName: label of the file system
	VolumeName string
	// Backend: auto | hdiutil | diskutil
	Backend string
	// ServedBy: auto | kernel | helper
	ServedBy string
	// Preallocate: reserve a file's space before its timed write
	Preallocate bool
	// ManyBands: allow_many_bands: silences the warning past 100,000
	ManyBands bool
	// Files: the file set that steps use unless they name one
	Files string
	// Workers: goroutines doing file I/O
	Workers int
	// Sync: none | fsync | full
	Sync string
	// Cache: direct | buffered | cold
	Cache string
	// Block: bytes a call; 0: one call a file up to 1 GiB
	Block units.Bytes
	// QoS: default | utility | background
	QoS string
	// Codec: stream: zstd | s2 | gzip | lzfse
	Codec string
	// Level: stream: codec's own level, 0 its default
	Level int
	// Threads: stream: compressing threads
	Threads int
	// Manual: values of manual axes, in plan order
	Manual []KeyValue
}

// KeyValue is one key of a case with its value as the plan writes it.
type KeyValue struct{ Key, Value string }

// Axis is one key of the matrix with its values, in plan order.
type Axis struct {
	Key    string
	Values []string
}

// Manual is an axis that the user sets (number of virtual cores): the run
// pauses before each value.
type Manual struct {
	Name   string
	Values []string
	// Instructions: what to do, with {value}
	Instructions string
	// Check: host fact that must equal the value on resume: "cpus", "memory",
	// "none"
	Check string
}

// Input is a file that the user brings.
type Input struct {
	Name, About string
	// Size: expected, 0 if any will do
	Size units.Bytes
	// Optional: without it a generated file of Size is used, a deviation
	Optional bool

	// PublishedSize is the size of the author's file where Size is another one,
	// else 0: printed times belong to it.
	PublishedSize units.Bytes
}

// FileSet is a population of files.
type FileSet struct {
	Name  string
	Parts []FilePart
	// Order: shuffled (within each set) | as-listed | shuffled-all
	Order string
	// Data: random | zero | mixed | text
	Data string
	// Compressible is the share of each 4 KiB that is filled with zeros (data =
	// "mixed").
	Compressible units.Share
}

// FilePart is explicit sizes times sets, or Count draws from a range times
// sets.
type FilePart struct {
	Sizes []units.Bytes
	// Low: range draws: log-uniform in [Low, High]
	Low   units.Bytes
	High  units.Bytes
	Count int
	Sets  int
	// Spread: of draws: "log" (default) or "linear"
	Spread string
}

// Block is one [[protocol]] table: steps for the cases that When selects.
type Block struct {
	When  Selector
	Steps []Step
}

// RunOptions are the table [run]: how the plan is run.
type RunOptions struct {
	// Rounds: with Auto the smallest number: that of the first look
	Rounds int
	// Auto: rounds are added until every interval is as narrow as Precision
	Auto bool
	// MaxRounds: limit of Auto, as are the next two, which 0 turns off
	MaxRounds  int
	MaxTime    units.Duration
	MaxWritten units.Bytes
	// Baseline: a native directory case in addition to the images of each place
	Baseline bool
	// Canary: a short native write and read before each case
	Canary bool
	Seed   uint64
	// Require: host facts: power = "ac" …
	Require []KeyValue
	// Estimator: headline: aggregate | mean | median | trimmed | theil-sen |
	// least-squares | weighted
	Estimator string
	// FitsIn is the share of the volume that live files may fill.
	FitsIn units.Share
	// Precision is the target half-width of the headline's interval as a share
	// of it; 0: none.
	Precision units.Share
	// Precondition is [Steady] if places are written to before the rounds until
	// their rate is steady, else "".
	Precondition string
	// SteadyWindow: samples over which the slope is computed
	SteadyWindow int
	// SteadyLimit: slope by sample as a share of the mean, below which the rate
	// is steady
	SteadyLimit units.Share
	// SteadyFile: size of a sample
	SteadyFile    units.Bytes
	SteadyTime    units.Duration
	SteadyWritten units.Bytes
}

// Published is one published figure.
type Published struct {
	Quantity Quantity
	Where    Selector
	// Statistic: as the source names it, "" if it names none
	Statistic string
	Value     Figure
	// On: where it differs from that of the source
	On   On
	Note string
	// Unmeasured figures belong to no case: they serve claims about published
	// figures.
	Unmeasured bool
}

// Figure is a number as printed: exact, about, below, above or a range, in base
// units.
type Figure struct {
	// Kind: is | about | below | above | range
	Kind string
	// Low, High: equal unless Kind is range
	Low, High float64
	// B/s | B | s | 1
	Unit string
	// Text: as written in the plan
	Text string
}

// Operand is one side of a claim: a quantity of a selection, measured or
// published, or a constant.
type Operand struct {
	Quantity Quantity
	Where    Selector
	// Statistic: overrides the headline estimator
	Statistic string
	// Published: the published figure, not the measured one
	Published bool
	// On: with Published: the figure that was taken there; zero: that of the
	// source
	On       On
	Constant *Figure
}

// Claim is one sentence that a run can confirm or refute.
type Claim struct {
	// ID: stable; made from the sentence when not given
	ID   string
	Says string
	// By: author | us
	By string
	// Scope: apple | any
	Scope string
	Note  string
	// Require makes a comparison of runs fail where the verdict is the
	// opposite.
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
	// Step: outcome: the do of the step
	Step    string
	Where   Selector
	Outcome string
	Parts   []Assert
}

// Bound is an accepted interval, either end may be open (±Inf).
type Bound struct {
	Low, High float64
	// LowOpen, HighOpen: strict inequality
	LowOpen, HighOpen bool
	Unit              string
	Text              string
}

// Fit is a model of one quantity along an axis.
type Fit struct {
	Name     string
	Quantity Quantity
	Where    Selector
	// Along: numeric axis: threads, workers, band_size, file_size, cycle, a
	// manual axis
	Along  string
	Points []string
	// Model: line | power | two-lines
	Model   string
	Predict []string
	// Published are coefficients as printed: intercept, slope, factor,
	// exponent, r2.
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
	// Over: one point each, in plan order
	Over []Selector
}

// Step is one action of the protocol. Do decides which fields matter.
type Step struct {
	Do    string
	Phase string
	// Expect: ok | fail
	Expect string
	// On names the container that the step acts on: "" is the case's own, else
	// the As of an earlier step.
	On string
	// As names the container that convert, transfer and damage make.
	As string

	// Files: write: file set; "" is the case's
	Files string
	// Batch: read, verify, delete: last | all
	Batch string
	// Order: read: same-as-written | shuffled | as-listed
	Order string
	// Workers: overrides of the case, 0 or "" when not set
	Workers int
	Sync    string
	Cache   string
	Block   units.Bytes

	// Mount, Verify, ReadOnly: attach
	Mount, Verify, ReadOnly *bool
	// Times: remount, repeat
	Times int
	// AtLeast: settle; remount waits this long each time
	AtLeast units.Duration
	// UntilStable: settle: until allocated size stops changing
	UntilStable bool
	// AtMost: settle
	AtMost units.Duration
	// Dir: mkdir
	Dir string

	// All: delete
	All bool
	// LastSets: delete
	LastSets int
	// Largest: delete: N largest of the last batch
	Largest int
	// Every: delete: every other file
	Every bool
	// Share: delete: random share
	Share units.Share

	// Battery: compact: refuse | allow
	Battery string
	// Size: resize
	Size units.Bytes
	// Format: convert; "" is the case's
	Format string
	// Encryption: convert
	Encryption string
	// BandSize: convert
	BandSize units.Bytes
	// Place: transfer, convert
	Place string
	// What: check: container | volume
	What string
	// Repair: check
	Repair bool
	// Kind: damage: header | band-missing | table | truncated | volume
	Kind string
	// Attr: xattr: name
	Attr string
	// Action: xattr: list | remove | set
	Action string
	// Value: xattr set
	Value string

	// From: copy, stream: input name or file on the volume
	From string
	// To: copy, stream: file on the volume
	To string
	// Direction: stream: compress | decompress
	Direction string
	// Codec: stream: overrides of the case
	Codec   string
	Level   int
	Threads int

	// Message: pause
	Message string
	// Steps: repeat, parallel
	Steps []Step

	// Position in the text of the plan, for messages.
	Line, Column int
}
