//go:build !linux

package hdiutil

func trimVolume(string) (int64, error) { return 0, errNoTrim }
