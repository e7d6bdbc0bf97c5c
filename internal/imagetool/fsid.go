package imagetool

import (
	"cmp"
	"slices"
	"unicode/utf16"

	"dmgbench/internal/gpt"
)

// hintOf is how lists call a partition of this type.
func hintOf(g gpt.GUID) string {
	if g == gpt.EFISystem {
		return "EFI"
	}
	return gpt.TypeName(g)
}

func inOrder(list []gpt.Partition) []gpt.Partition {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b gpt.Partition) int { return cmp.Compare(a.First, b.First) })
	return list
}

// units16 is the length of a name in UTF-16 units.
func units16(s string) int { return len(utf16.Encode([]rune(s))) }
