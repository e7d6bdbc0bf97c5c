// Package echarts carries Apache ECharts, the charting library of the report,
// as the npm package publishes it (VERSION says which). scripts/assets.sh
// re-creates the files; nothing here is edited by hand or fetched at run time.
package echarts

import (
	_ "embed"
	"strings"
)

// Script is echarts.min.js: everything, minified, with its licence banner. It
// contains no "</script", so it may stand inside a script element as it is.
//
//go:embed echarts.min.js
var Script string

// License is the Apache-2.0 licence of ECharts and the BSD-3-Clause licence of the d3 code in it.
//
//go:embed LICENSE
var License string

// Notice is the attribution notice that the Apache licence asks to pass on.
//
//go:embed NOTICE
var Notice string

//go:embed VERSION
var version string

// Version is the npm package and its version, such as "echarts@6.1.0".
func Version() string { return strings.TrimSpace(version) }
