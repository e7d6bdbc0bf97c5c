package selftest

import (
	"context"
	"fmt"
	"strings"
)

// tooNarrow ends the method of an interval over files that change between two speeds (docs/metrics.md).
const tooNarrow = "too narrow: files at two speeds"

// speedLaw is a drive that is slow for some files at a time.
type speedLaw struct{ name, law string }

func speedLaws(full bool) []speedLaw {
	const head = "write = 5 GB/s;read = 6 GB/s;latency = 200 us;step = 20 ms;file_noise = 5%;"
	laws := []speedLaw{
		{"30 % of files × 2, 10 at a time", head + "slow = 30% x 2 in 10 files"},
		{"30 % of files × 1.5, 10 at a time", head + "slow = 30% x 1.5 in 10 files"},
		{"20 % of files × 1.5, 1 at a time", head + "slow = 20% x 1.5 in 1 files"},
	}
	if !full {
		return laws[:1]
	}
	return laws
}

// twoSpeedIntervals: what the intervals of median and Theil–Sen are worth where files are at two speeds.
func (x *Exam) twoSpeedIntervals(ctx context.Context) (Study, error) {
	s := Study{ID: "speeds", Title: "Files at two speeds",
		Asks: "A drive is slow for some files at a time. How often do the intervals of median and Theil–Sen contain what ever more files would show?"}
	labelled := within("where a drive is half as fast for 10 files at a time, the exact intervals over files are labelled as too narrow in 9 of 10 runs", "%", 90, none)
	overRounds := within("with files at two speeds, intervals of median and Theil–Sen over 3 or more rounds cover 93 to 97 %", "%", 93, 97)
	rounds := []int{1, 3, 5, 10}
	if !x.Full {
		rounds = []int{1, 3}
	}
	columns := []string{"labelled", "1 round, labelled", "1 round, not labelled"}
	for _, n := range rounds[1:] {
		columns = append(columns, fmt.Sprintf("%d rounds", n))
	}
	table := keyed{}
	var rows []string
	for _, l := range speedLaws(x.Full) {
		for _, n := range rounds {
			if err := x.coverSpeeds(ctx, l, n, table); err != nil {
				return s, err
			}
		}
		for _, e := range exactOnes {
			row := e + ", " + l.name
			rows = append(rows, row)
			if strings.Contains(l.name, "× 2") {
				labelled.share(row, *table.at(row, "labelled"))
			}
			for _, c := range columns[3:] {
				overRounds.share(row+", "+c, *table.at(row, c))
			}
		}
	}
	s.How = fmt.Sprintf("%d runs a figure, 160 files of 16 sizes a round, at 5 GB/s and 200 µs a call; files scatter by 5 %%.", x.runs(1000, 60))
	s.Tables = []Table{table.table("Runs of 1 round with the label, and coverage of the intervals, in %", "estimate and law", rows, columns)}
	s.Promises = []Promise{labelled.promise(), overRounds.promise()}
	s.Says = []string{"Shortfall: where a drive changes its speed for several files at a time, the intervals of median and Theil–Sen over the files of one round are too narrow. " +
		"Their `method` ends with \"" + tooNarrow + "\". In few runs the change of speed is not found, and the label is missing.",
		"With 3 or more rounds the unit is the round, and the intervals keep their level.",
		"Where each file is slow or fast independently of the others, the intervals over files keep their level although they have the label."}
	return s, nil
}

// coverSpeeds plays runs of n rounds under a law, and counts labels and the intervals that contain the truth.
func (x *Exam) coverSpeeds(ctx context.Context, l speedLaw, n int, table keyed) error {
	d := design{formats: []string{"UDRW"}, sizes: goldSizes, sets: 10, rounds: n}
	p, err := d.plan()
	if err != nil {
		return err
	}
	m := lawOf(l.law)
	truth := truths(m.Law, d.sizes)
	type seen struct{ given, label, holds bool }
	all := make([][2]seen, x.runs(1000, 60))
	err = each(ctx, len(all), func(ctx context.Context, i int) error {
		r, err := x.stage.play(ctx, p, m, x.seed("speeds", l.name, n, i), 1)
		if err != nil {
			return err
		}
		for k, name := range exactOnes {
			if e, ok := estimateOf(r, "", "write", name); ok && e.CI != nil {
				all[i][k] = seen{true, strings.HasSuffix(e.CI.Method, tooNarrow), e.CI.Low <= truth[name] && truth[name] <= e.CI.High}
			}
		}
		return nil
	})
	for _, one := range all {
		for k, name := range exactOnes {
			row, column := name+", "+l.name, fmt.Sprintf("%d rounds", n)
			if n == 1 {
				column = "1 round, not labelled"
				if one[k].label {
					column = "1 round, labelled"
				}
				table.at(row, "labelled").add(one[k].label)
			}
			if one[k].given {
				table.at(row, column).add(one[k].holds)
			}
		}
	}
	return err
}
