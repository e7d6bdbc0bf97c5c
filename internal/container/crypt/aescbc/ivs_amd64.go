package aescbc

func supportedIVs() []ivSet { return []ivSet{genericIVs} }
