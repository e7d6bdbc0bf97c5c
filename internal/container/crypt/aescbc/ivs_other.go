//go:build !amd64

package aescbc

func supportedIVs() []ivSet { return []ivSet{genericIVs} }
