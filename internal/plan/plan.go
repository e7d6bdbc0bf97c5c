// Package plan reads plans: what images to make, what to do to them, and what
// the author published.
//
// A plan is one TOML file. [Parse] reads it in three passes: the text becomes a
// tree that keeps positions (tree.go), the keys that the tags of plan's structs
// declare decode the tree into a [Plan] (codec.go), and the plan is checked as a
// whole (check.go). All errors are reported at once, each with file, line and
// column.
//
// The language is declared in registries: types of values (value.go), kinds of
// step (step.go), tests of claims (claim.go), and keys.md, which has the
// quantities and the meaning of every key. Decoder, hints, canonical form, JSON
// Schema and docs/plan-language.md all derive from them.
package plan

import (
	"cmp"
	"time"

	"dmgbench/internal/system/units"
)

// Plan is one plan as executed: defaults filled in, matrix not yet expanded.
type Plan struct {
	// Name is the file's name without ".toml"; it names run folders.
	Name string
	// Schema is the version of the plan language
	Schema  int    `plan:"schema 1..1 !"`
	Title   string `plan:"title line !"`
	Summary string `plan:"summary text"`
	// Choices are what the source leaves open and this plan chose; each is a
	// deviation.
	Choices []string `plan:"choices text"`
	Source  *Source  `plan:"source"`
	// Defaults are the values of [image], [io] and [stream]; an axis or a case
	// overrides single keys.
	Defaults Settings `plan:"inline"`
	Axes     []Axis   `plan:"matrix matrix"`
	Exclude  []Selector
	// Extra: [[case]], combinations in addition to the product
	Extra  []Selector `plan:"case cases"`
	Manual []Manual   `plan:"manual"`
	// Notes: [[place]]: what places have to be
	Notes []PlaceNote `plan:"place"`
	// Inputs are files the user has to bring with --input NAME=PATH.
	Inputs    []Input     `plan:"inputs inputs"`
	Files     []FileSet   `plan:"files files"`
	Protocol  []Block     `plan:"protocol !"`
	Run       RunOptions  `plan:"run ={}"`
	Published []Published `plan:"published published"`
	Claims    []Claim     `plan:"claim"`
	Fits      []Fit       `plan:"fit"`
	Relations []Relation  `plan:"relation"`
	Tables    []Table     `plan:"table"`
	Uses      []Use       `plan:"use"`
	// Changes are how this plan deviates from the published one; [Plan.Apply]
	// makes them.
	Changes []Change `plan:"change"`
}

// Source names where the protocol and the figures were published.
type Source struct {
	Title  string `plan:"title line !"`
	Author string `plan:"author text"`
	URL    string `plan:"url text"`
	// Date: day only
	Date time.Time `plan:"date"`
	On   On        `plan:"on"`
}

// On is the machine, system and tool that figures were taken with.
type On struct {
	Machine string    `plan:"machine text"`
	OS      string    `plan:"os text"`
	Tool    string    `plan:"tool text"`
	Date    time.Time `plan:"date"`
}

// Settings are the keys that make a case. All of them but two of [image] are
// possible axes. The zero value of a field means "not set" before defaults are
// filled in.
type Settings struct {
	TargetSettings `plan:"target ={}"`
	ImageSettings  `plan:"image ={}"`
	IOSettings     `plan:"io ={}"`
	StreamSettings `plan:"stream ={}"`
	// Manual: values of manual axes, in plan order
	Manual []KeyValue
}

// TargetSettings are the table [target].
type TargetSettings struct {
	// Target: image | directory
	Target string `plan:"kind image|directory =image"`
	// Place: named folder; "" is the run folder
	Place string `plan:"place place"`
	// Preallocate: reserve a file's space before its timed write
	Preallocate bool `plan:"preallocate =false always"`
}

// ImageSettings are the table [image].
type ImageSettings struct {
	// UDRW, UDSB, UDSP, ASIF, …
	Format string `plan:"format writable"`
	// ConvertTo: what convert steps without a format make; "": each has one
	ConvertTo string `plan:"convert_to format"`
	// Encryption: none | AES-128 | AES-256
	Encryption string `plan:"encryption encryption =none"`
	// Filesystems: preference: the first one that the engine can make is used
	Filesystems []string `plan:"filesystem exact;filesystem_preference filesystem min=1"`
	// Size: nominal size of the image
	Size units.Bytes `plan:"size"`
	// BandSize: 0: the tool's default
	BandSize units.Bytes `plan:"band_size band =default"`
	// VolumeName: label of the file system
	VolumeName string `plan:"volume_name label =BENCH"`
	// Backend: auto | hdiutil | diskutil
	Backend string `plan:"backend auto|hdiutil|diskutil =auto"`
	// ServedBy: auto | kernel | helper
	ServedBy string `plan:"served_by auto|kernel|helper =auto quiet"`
	// Mount: private | finder: whether Finder and Spotlight see the volume
	Mount string `plan:"mount private|finder =private quiet"`
	// Verify: on | off: whether attach verifies the checksum of the image
	Verify string `plan:"verify on|off =on quiet"`
	// ManyBands silences the warning past 100,000 bands.
	ManyBands bool `plan:"allow_many_bands =false always"`
}

// IOSettings are the table [io].
type IOSettings struct {
	// Files: the file set that steps use unless they name one
	Files string `plan:"files name"`
	// Workers: goroutines doing file I/O
	Workers int `plan:"workers 1..1024 =1 always"`
	// Sync: none | fsync | full
	Sync string `plan:"sync sync =fsync"`
	// Cache: direct | buffered | cold
	Cache string `plan:"cache cache =direct"`
	// Block: bytes a call; 0: one call a file up to 1 GiB
	Block units.Bytes `plan:"block block =whole"`
	// QoS: default | utility | background
	QoS string `plan:"qos default|utility|background =default"`
}

// StreamSettings are the table [stream].
type StreamSettings struct {
	// Codec: zstd | s2 | gzip | lzfse
	Codec string `plan:"codec codec =zstd"`
	// Level: codec's own level, 0 its default
	Level int `plan:"level 0..22 =0 always"`
	// Threads: compressing threads
	Threads int `plan:"threads 0..1024 =0 always"`
}

// KeyValue is one key of a case with its value as the plan writes it.
type KeyValue struct{ Key, Value string }

// Axis is one key of the matrix with its values, in plan order.
type Axis = Choice

// Manual is an axis that the user sets (number of virtual cores): the run
// pauses before each value.
type Manual struct {
	Name   string   `plan:"name name !"`
	Values []string `plan:"values loose min=1 !"`
	// Instructions: what to do, with {value}
	Instructions string `plan:"instructions words !"`
	// Check: host fact that must equal the value on resume
	Check string `plan:"check cpus|memory|none =none"`
}

// Input is a file that the user brings.
type Input struct {
	Name  string
	About string `plan:"about words !"`
	// Size: expected, 0 if any will do
	Size units.Bytes `plan:"size"`
	// Optional: without it a generated file of Size is used, a deviation
	Optional bool `plan:"optional"`
	// PublishedSize is the size of the author's file where Size is another one,
	// else 0: printed times belong to it.
	PublishedSize units.Bytes `plan:"published_size"`
}

// FileSet is a population of files.
type FileSet struct {
	Name string
	// Single: of a text without parts; [Parse] moves it into Parts
	Single FilePart   `plan:"inline"`
	Parts  []FilePart `plan:"parts"`
	// Tree: files in folders instead of parts, nil for none
	Tree *Tree `plan:"tree"`
	// Order: shuffled (within each set) | as-listed | shuffled-all
	Order string `plan:"order shuffled|as-listed|shuffled-all =shuffled"`
	// Data: random | zero | mixed | text
	Data string `plan:"data random|zero|mixed|text =random"`
	// Compressible is the share of each 4 KiB that is filled with zeros (data =
	// "mixed").
	Compressible units.Share `plan:"compressible"`
}

// FilePart is explicit sizes times sets, or Count draws from a range times
// sets.
type FilePart struct {
	Sizes []units.Bytes `plan:"sizes min=1"`
	// Range: the smallest and the largest size of draws
	Range []units.Bytes `plan:"range min=2 max=2"`
	Count int           `plan:"count 1..1000000"`
	// Spread: of draws: "log" (default) or "linear"
	Spread string `plan:"spread log|linear"`
	Sets   int    `plan:"sets 1..100000"`
}

// Block is one [[protocol]] table: steps for the cases that When selects.
type Block struct {
	When  Selector `plan:"when cases-selector"`
	Steps []Step   `plan:"steps min=1 !"`
}

// RunOptions are the table [run]: how the plan is run.
type RunOptions struct {
	// Rounds: with Auto the smallest number: that of the first look
	Rounds int `plan:"rounds rounds =3"`
	// Auto: rounds are added until every interval is as narrow as Precision
	Auto bool
	// MaxRounds: limit of Auto, as are the next two, which 0 turns off
	MaxRounds  int            `plan:"max_rounds 1..10000"`
	MaxTime    units.Duration `plan:"max_time span"`
	MaxWritten units.Bytes    `plan:"max_written"`
	// Baseline: a native directory case in addition to the images of each place
	Baseline bool `plan:"baseline =true always"`
	// Canary: a short native write and read before each case
	Canary bool   `plan:"canary =true always"`
	Seed   uint64 `plan:"seed 0..9223372036854775807 =1 always"`
	// Require: host facts: power = "ac" …
	Require []KeyValue `plan:"require require"`
	// Estimator: headline
	Estimator string `plan:"estimator estimator =aggregate"`
	// FitsIn is the share of the volume that live files may fill.
	FitsIn units.Share `plan:"fits_in =98%"`
	// Precision is the target half-width of the headline's interval as a share
	// of it; 0: none.
	Precision units.Share `plan:"precision"`
	// Precondition is [Steady] if places are written to before the rounds until
	// their rate is steady, else "".
	Precondition string `plan:"precondition none|steady"`
	// SteadyWindow: samples over which the slope is computed
	SteadyWindow int `plan:"steady_window 5..1000"`
	// SteadyLimit: slope by sample as a share of the mean, below which the rate
	// is steady
	SteadyLimit units.Share `plan:"steady_limit"`
	// SteadyFile: size of a sample
	SteadyFile    units.Bytes    `plan:"steady_file"`
	SteadyTime    units.Duration `plan:"steady_max_time span"`
	SteadyWritten units.Bytes    `plan:"steady_max_written"`
}

// Published is one published figure.
type Published struct {
	Quantity Quantity
	Where    Selector `plan:"where"`
	// Statistic: as the source names it, "" if it names none
	Statistic string `plan:"statistic statistic"`
	Value     Figure
	// On: where it differs from that of the source
	On   On     `plan:"on"`
	Note string `plan:"note text"`
	// Unmeasured figures belong to no case: they serve claims about published
	// figures.
	Unmeasured bool `plan:"unmeasured"`
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
	Constant *Figure `plan:"value figure"`
	// Statistic: overrides the headline estimator
	Statistic string `plan:"statistic statistic"`
	// Published: the published figure, not the measured one
	Published bool `plan:"published"`
	// On: with Published: the figure that was taken there; zero: that of the
	// source
	On On `plan:"on"`
}

// Claim is one sentence that a run can confirm or refute.
type Claim struct {
	Says string `plan:"says words !"`
	// By: author | us
	By string `plan:"by author|us !"`
	// Scope: apple | any
	Scope string `plan:"scope apple|any"`
	// ID: stable; made from the sentence when not given
	ID   string `plan:"id name"`
	Note string `plan:"note text"`
	// Require makes a comparison of runs fail where the verdict is the
	// opposite.
	Require bool   `plan:"require"`
	Assert  Assert `plan:"inline"`
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
	Left        Operand `plan:"left"`
	Right       Operand `plan:"right"`
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
	Name     string   `plan:"name name !"`
	Quantity Quantity `plan:"quantity quantities !"`
	Where    Selector `plan:"where"`
	// Along: numeric axis: threads, workers, band_size, file_size, cycle, a
	// manual axis
	Along  string   `plan:"along name !"`
	Points []string `plan:"points loose"`
	// Model: line | power | two-lines
	Model   string   `plan:"model line|power|two-lines !"`
	Predict []string `plan:"predict loose"`
	// Published are coefficients as printed: intercept, slope, factor,
	// exponent, r2.
	Published []Coefficient `plan:"published coefficients"`
}

// Coefficient is one printed coefficient of a fit.
type Coefficient struct {
	Name  string
	Value float64
	Text  string
}

// Relation compares one quantity with another over cases.
type Relation struct {
	Name string  `plan:"name name !"`
	Says string  `plan:"says text"`
	X    Operand `plan:"x !"`
	Y    Operand `plan:"y !"`
	// Over: one point each, in plan order
	Over []Selector `plan:"over min=2 !"`
}

// Step is one action of the protocol. Do decides which fields matter: the row of
// its kind declares their keys.
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

	// Files: write, tree, damage: file set; "" is the case's, or the newest tree
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
	// Share: delete, tree: random share
	Share units.Share

	// Count: edit: number of files
	Count int
	// Amount: edit, random: bytes
	Amount units.Bytes

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
	// Kind: damage: header | band-missing | table | truncated | tail | flipped |
	// volume | killed; edit: overwrite | append | insert | replace
	Kind string
	// Bytes: damage, flipped: how many
	Bytes int
	// Band: damage, flipped: number of a stored band, from 1; 0 is all files
	Band int
	// Attr: xattr: name
	Attr string
	// Action: xattr: list | remove | set; tree: create | list | read | rewrite | rename | delete
	Action string
	// Value: xattr set
	Value string

	// File, FileSize: random: path on the volume, and size if no step before made
	// it
	File     string
	FileSize units.Bytes
	// Reads: random: share of the operations
	Reads units.Share
	// Flush: random: writes of a worker from flush to flush, 0: none
	Flush int
	// Time: random: until it ends; else Amount ends it
	Time units.Duration

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

// walk visits steps and the steps inside repeat and parallel.
func walk(steps []Step, visit func(*Step)) {
	walkCycles(steps, 0, func(s *Step, _ int) { visit(s) })
}

// walkCycles is walk with the number of cycles of the repeat around each step,
// 0 outside of one.
func walkCycles(steps []Step, cycles int, visit func(s *Step, cycles int)) {
	for i := range steps {
		s := &steps[i]
		visit(s, cycles)
		inner := cycles
		if s.Do == "repeat" {
			inner = max(s.Times, 1)
		}
		walkCycles(s.Steps, inner, visit)
	}
}

// makes is the format that a convert step makes in a case, "" of other steps
// and where neither has a format.
func (s *Step) makes(c *Settings) string {
	if s.Do != "convert" {
		return ""
	}
	return cmp.Or(s.Format, c.ConvertTo)
}

// Table is a table of results as an article prints it: a cell for each row and
// column. The lines of one side name a quantity, a coefficient or an outcome,
// those of the other side only select. A cell is the value that the one names
// of what both select.
type Table struct {
	Name  string `plan:"name name !"`
	Title string `plan:"title line !"`
	// Caption: printed under it
	Caption string `plan:"caption text"`
	// Unit: as printed, for all lines with a quantity that it fits
	Unit string `plan:"unit unit"`
	// Digits: after the decimal point, for all lines; nil: three significant
	// digits
	Digits  *int        `plan:"digits 0..9"`
	Columns []TableLine `plan:"columns min=1 max=100 !"`
	Rows    []TableLine `plan:"rows min=1 max=100 !"`
}

// TableLine is one row or column of a [Table].
type TableLine struct {
	// Coefficient is that of the fit which the line of the other side names by
	// Fit.
	Coefficient string
	Fit         string
	// Outcome is how the steps ended that the operand selects.
	Outcome
	// Title heads the line; "" is the selection in words.
	Title string
	// Group: heading over neighbouring columns, or before neighbouring rows
	Group string
	// Operand is the quantity with its selection; without a quantity it only
	// selects. Published takes the figure as printed, without a measurement. A
	// statistic may be on either side.
	Operand
	// Unit: as printed, "" for that of the table
	Unit string
	// Digits: after the decimal point, nil for those of the table
	Digits *int
}

// Outcome is the value of a [TableLine] that names how steps ended.
type Outcome struct {
	// Step is their kind; OK and Fail are the words for the outcome, "" for "ok"
	// and "fails".
	Step     string
	OK, Fail string
}

// Selector picks cases, steps or samples: every pair must match. Keys are
// settings keys, manual axes, baseline, and phase, cycle, file_size, set. A key
// may have several values, any of which matches.
type Selector []Choice

// Choice is one key of a selector with the values that match.
type Choice struct {
	Key    string
	Values []string
}

// Quantity names what is measured: a rate (write, read, stream), a time
// (attach_time …), a size (allocated, free, reclaimed …), a count (bands) or a
// pure number (ratio, saving, a fit's coefficient). [Quantities] lists them.
type Quantity string
