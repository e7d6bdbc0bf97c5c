package analysis

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"dmgbench/internal/result"
)

// Claims as plans write them, of every kind, by an author whose figures agree
// with threeRates.
const writtenClaims = threeFormats + `
[[published]]
where = { format = "UDSB", phase = "last" }
write = "1.85 GB/s"
read  = "about 1.9 GB/s"

[[published]]
where = { format = "UDRW", phase = "last" }
write = "0.97 GB/s"
read  = "0.97 GB/s"

[[published]]
where = { format = "UDSP", phase = "last" }
write = "0.45 GB/s to 0.55 GB/s"

[[published]]
where = { format = "UDSB", phase = "last" }
on    = { machine = "another Mac" }
write = "0.1 GB/s"

[[published]]
where = { format = "UDRW", cycle = 1 }
allocated = "200 MB"
[[published]]
where = { format = "UDRW", cycle = 2 }
allocated = "300 MB"
[[published]]
where = { format = "UDRW", cycle = 3 }
allocated = "400 MB"

[[fit]]
name = "growth"
quantity = "allocated"
where = { format = "UDRW" }
along = "cycle"
model = "line"
predict = [4]
published = { slope = "100 MB" }

[[claim]]
says  = "ratio"
by    = "author"
left  = { write = { format = "UDSB", phase = "last" } }
right = { write = { format = "UDRW", phase = "last" } }
ratio = ">= 1.5"

[[claim]]
says  = "difference"
by    = "author"
left  = { write = { format = "UDSB", phase = "last" } }
right = { write = { format = "UDRW", phase = "last" } }
difference = "> 0.5 GB/s"

[[claim]]
says  = "equal"
by    = "author"
left  = { read = { format = "UDSB", phase = "last" } }
right = { write = { format = "UDSB", phase = "last" } }
equal = { within = "12%" }

[[claim]]
says  = "bound"
by    = "author"
left  = { write = { format = "UDRW", phase = "last" } }
bound = "0.5 GB/s to 1.5 GB/s"

[[claim]]
says  = "order"
by    = "author"
order = { of = [{ write = { format = "UDSB", phase = "last" } }, { write = { format = "UDRW", phase = "last" } }, { write = { format = "UDSP", phase = "last" } }], within = "10%" }

[[claim]]
says  = "rank"
by    = "author"
left  = { write = { format = "UDRW", phase = "last" } }
rank  = { of = [{ write = { format = "UDSB", phase = "last" } }, { write = { format = "UDSP", phase = "last" } }], is = 2 }

[[claim]]
says  = "extreme"
by    = "author"
left  = { write = { phase = "last" } }
extreme = { along = "format", is = "largest", at = ["UDSB"] }

[[claim]]
says  = "trend"
by    = "author"
left  = { allocated = { format = "UDRW" } }
trend = { along = "cycle", is = "rising" }

[[claim]]
says  = "spread"
by    = "author"
left  = { allocated = { format = "UDRW" } }
spread = { over = "cycle", bound = ">= 50%" }

[[claim]]
says  = "coefficient"
by    = "author"
coefficient = { fit = "growth", name = "slope", bound = "90 MB to 110 MB" }

[[claim]]
says  = "prediction"
by    = "author"
left  = { allocated = { format = "UDRW", cycle = 3 } }
prediction = { fit = "growth", at = "4", bound = "0.7 to 0.9" }

[[claim]]
says  = "outcome"
by    = "author"
outcome = { do = "check", where = { format = ["UDSB", "UDRW"], phase = "end" }, is = "ok" }

[[claim]]
says  = "all and any"
by    = "author"
all   = [
  { left = { write = { format = "UDSB", phase = "last" } }, right = { value = "1 GB/s" }, ratio = "> 1" },
  { any = [
    { left = { write = { format = "UDRW", phase = "last" } }, right = { value = "1 GB/s" }, ratio = "> 5" },
    { left = { write = { format = "UDRW", phase = "last" } }, right = { write = { format = "UDSB", phase = "last" }, published = true }, ratio = "< 1" },
  ] },
]
`

func TestClaimsAsPlansWriteThem(t *testing.T) {
	p := planOf(t, writtenClaims)
	require.Len(t, p.Claims, 13)
	for _, c := range JudgePublished(p) {
		assert.Equal(t, result.Holds, c.Verdict, "%s on the author's figures: %s", c.Says, c.Reason)
	}
	r := analysed(t, p, 4, threeRates(0.005))
	for _, c := range r.Claims {
		assert.Equal(t, result.Holds, c.Verdict, "%s as measured: %s", c.Says, c.Reason)
	}
	s := summaryOf(t, r, "format=UDSB", "last", "write")
	require.Len(t, s.Published, 2)
	assert.InDelta(t, 1, s.Published[0].Ratio, 0.05)
	assert.Contains(t, s.Published[1].On, "another Mac")

	l := threeRates(0.005)
	l.engine = own()
	for _, c := range analysed(t, p, 4, l).Claims {
		assert.Equal(t, result.NotMeasured, c.Verdict, c.Says)
		assert.NotEmpty(t, c.Here, c.Says)
	}
}
