package reporttest

import "dmgbench/internal/result"

// tabulate gives the run a table of the plan: measured cells with their
// interval and the published figure, one that failed, one that the protocol does
// not have, and one that is only printed.
func (b *run) tabulate() {
	two, none := 2, 0
	t := result.Table{Name: "new-images", Title: "New images, as the article prints them", Caption: "State 1 of the source: new and empty.",
		Columns: []result.TableLine{{Title: "read", Group: "rate", Op: "read", Unit: "GB/s", Digits: &two},
			{Title: "write", Group: "rate", Op: "write", Unit: "GB/s", Digits: &two}, {Title: "write, macOS 26.0", Group: "rate", Op: "write", Unit: "GB/s", Digits: &two, Printed: true},
			{Title: "size on disk", Op: "allocated", Unit: "MB", Digits: &none}},
		Rows: []result.TableLine{{Title: "RAW"}, {Title: "RAW, AES-256"}, {Title: "sparse bundle"}, {Title: "sparse image"}}}
	for i, id := range []string{"format=UDRW,encryption=none", "format=UDRW,encryption=AES-256", "format=UDSB,encryption=none", "format=UDSP,encryption=none"} {
		row := []result.TableCell{b.cell(id, "read"), b.cell(id, "write"), {}, b.cell(id, "allocated")}
		row[2].Why = "the source prints no write rate with format " + t.Rows[i].Title
		if i == 1 {
			row[2] = result.TableCell{Published: &result.PublishedValue{Text: "4.3 GB/s", Kind: "is", Low: 4.3e9, High: 4.3e9, Unit: "B/s", On: "Mac mini M4 Pro, macOS 26.0"}}
			row[3] = result.TableCell{Why: "not part of the protocol"}
		}
		t.Rows[i].Group = map[bool]string{true: "encrypted", false: "plain"}[i == 1]
		t.Cells = append(t.Cells, row)
	}
	b.r.Tables = []result.Table{t}
}

func (b *run) cell(id, op string) result.TableCell {
	for i := range b.r.Summaries {
		s := &b.r.Summaries[i]
		if s.Case != id || s.Op != op || s.Phase != "new" {
			continue
		}
		c := result.TableCell{Case: id, Phase: s.Phase, Rounds: s.Rounds, Estimate: &s.Estimates[0], Warnings: s.Warnings}
		if len(s.Published) > 0 {
			c.Published = &s.Published[0]
		}
		return c
	}
	return result.TableCell{Why: "case " + id + " was failed: writing file 17 of 32: no space left on device"}
}

// spoil puts a name into everything that a table shows.
func spoil(r *result.Result, nasty func() string) {
	for i := range r.Tables {
		t := &r.Tables[i]
		t.Name, t.Title, t.Caption = nasty(), nasty(), nasty()
		for _, lines := range [][]result.TableLine{t.Columns, t.Rows} {
			for k := range lines {
				lines[k].Title, lines[k].Group = nasty(), nasty()
			}
		}
		t.Columns[0].Op, t.Columns[1].Unit = nasty(), nasty()
		for _, row := range t.Cells {
			for k := range row {
				row[k].Case, row[k].Why = nasty(), nasty()
				if row[k].Published != nil {
					p := *row[k].Published
					p.Text, p.On = nasty(), nasty()
					row[k].Published = &p
				}
			}
		}
		t.Cells = append(t.Cells, nil, t.Cells[0][:1])
	}
}
