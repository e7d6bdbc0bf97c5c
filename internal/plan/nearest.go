package plan

// Nearest is the word of words that word was probably meant to be: the one within
// a third of its length in edits, or "". It is what hints of plans are made with.
func Nearest(word string, words []string) string { return nearest(word, words) }
