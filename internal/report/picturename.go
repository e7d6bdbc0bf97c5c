package report

import (
	"fmt"
	"strings"
	"unicode"
)

// maxPictureName is the number of characters of a picture's name.
const maxPictureName = 80

// nameFiles gives every chart a file name of its own that is made of its heading: "write-speed-of-each-case".
func nameFiles(charts []Chart) {
	taken := map[string]bool{}
	for i := range charts {
		name := pictureName(charts[i].Heading)
		unique := name
		for n := 2; taken[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		taken[unique], charts[i].File = true, unique
	}
}

// pictureName keeps the letters a to z and the digits of a heading, with hyphens between its words.
func pictureName(heading string) string {
	words := strings.FieldsFunc(strings.ToLower(heading), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	name := ""
	for _, word := range words {
		if len(name)+1+len(word) > maxPictureName {
			break
		}
		name = strings.TrimPrefix(name+"-"+word, "-")
	}
	return FirstOf(name, "chart")
}
