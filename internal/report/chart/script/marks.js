// Marks of our own that the charting library does not have, and the colours of a scale.
// Each maker gives a function that draws one item; text is passed on as text.
(function (root) {
  'use strict';

  var FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif";
  // From few to much, with the ink that can be read on each step; much is what stands out from the paper.
  var LIGHT = [['#e4eef8', '#1a1f26'], ['#bfd9f0', '#1a1f26'], ['#8fbde3', '#1a1f26'], ['#5b9dd1', '#0c0f12'], ['#2470b0', '#ffffff'], ['#0c4a85', '#ffffff']];
  var DARK = [['#1b2836', '#e6e9ed'], ['#22405c', '#e6e9ed'], ['#2c5c83', '#ffffff'], ['#5a96c6', '#0c0f12'], ['#86b9e3', '#0c0f12'], ['#c0e0f9', '#0c0f12']];

  // step is the colour of class i of n, spread over the whole scale.
  function step(dark, i, n) {
    var ramp = dark ? DARK : LIGHT;
    return ramp[n > 1 ? Math.round(i * (ramp.length - 1) / (n - 1)) : 3];
  }

  // longestLabel is the number of characters of the longest label at a mark.
  function longestLabel(spec) {
    return Math.max.apply(null, spec.labels.reduce(function (all, list) { return all.concat(list || []); }, ['']).map(function (l) { return l.length; }));
  }

  // One cell of a heat map.
  function heat(colour, ink, spec) {
    var longest = longestLabel(spec);
    return function (params, api) {
      var at = api.coord([api.value(0), api.value(1)]);
      var size = api.size([1, 1]);
      var w = Math.max(size[0] - 1.5, 1), h = Math.max(size[1] - 1.5, 1);
      var label = spec.labels[params.seriesIndex][params.dataIndex];
      var children = [{ type: 'rect', shape: { x: at[0] - w / 2, y: at[1] - h / 2, width: w, height: h, r: 1.5 }, style: { fill: colour } }];
      if (longest * 6.2 + 4 <= w) { // all cells have their number, or none: one that is missing would look like a gap
        children.push({ type: 'text', silent: true, z2: 5,
          style: { text: label, x: at[0], y: at[1], align: 'center', verticalAlign: 'middle', fill: ink, font: '11px ' + FONT } });
      }
      return { type: 'group', children: children };
    };
  }

  // Vertical interval around a point of a curve, which the lines show through.
  function errorBar(colour) {
    return function (params, api) {
      var a = api.coord([api.value(0), api.value(2)]), b = api.coord([api.value(0), api.value(3)]);
      var top = params.coordSys.y, bottom = top + params.coordSys.height;
      var style = { stroke: colour, lineWidth: 1, opacity: 0.5 };
      var line = function (x1, y1, x2, y2) {
        return { type: 'line', shape: { x1: x1, y1: y1, x2: x2, y2: y2 }, style: style, z2: 10, silent: true };
      };
      var bars = [line(a[0], Math.min(a[1], bottom), b[0], Math.max(b[1], top))];
      var end = function (y, edge, inward) {
        if ((edge - y) * inward <= 0.5) {
          bars.push(line(a[0] - 4, y, a[0] + 4, y));
        } else { // it goes on beyond the scale
          bars.push(line(a[0] - 4, edge + 6 * inward, a[0], edge), line(a[0] + 4, edge + 6 * inward, a[0], edge));
        }
      };
      end(b[1], top, 1);
      end(a[1], bottom, -1);
      return { type: 'group', children: bars };
    };
  }

  // A line of numbers of bands: each is what one is drawn as, and its number stands beside.
  function bands(s, look, theme, each) {
    s.itemStyle = { color: look.colour };
    s.lineStyle = { color: look.colour, width: 1.4, type: 'dashed' };
    s.symbol = 'rect';
    s.symbolSize = 6;
    s.showAllSymbol = true;
    s.label = { show: true, position: 'top', color: theme.ink, fontSize: 11, fontFamily: FONT,
      formatter: function (p) { return p.value[1] === null ? '' : String(Math.round(p.value[1] / each)); } };
    s.labelLayout = { hideOverlap: true };
  }

  // A point whose name stands beside it, unless names would lie on each other: the legend has them all.
  function named(s, theme, x) {
    var right = s.data[0] && s.data[0][0] > (x.min + x.max) / 2; // away from the nearer edge
    s.label = { show: true, position: right ? 'left' : 'right', color: theme.ink, fontSize: 11, fontFamily: FONT, formatter: function (p) { return p.seriesName; } };
    s.labelLayout = { hideOverlap: true };
  }

  // One step of a waterfall. A step back is hollow.
  function part(colour, theme, spec) {
    return function (params, api) {
      var area = params.coordSys, edge = area.x + area.width;
      var row = api.value(1), slots = api.value(8), band = api.size([0, 1])[1] * 0.86;
      var thick = band / slots;
      var y = api.coord([0, row])[1] + (api.value(7) + 0.5 - api.value(9) / 2) * thick;
      var at = function (v) { return api.coord([v, row])[0]; };
      var from = at(api.value(4)), to = at(api.value(0));
      var half = Math.max(thick / 2 - 2, 2);
      var back = api.value(0) < api.value(4);
      var line = function (x1, y1, x2, y2, style) {
        return { type: 'line', shape: { x1: x1, y1: y1, x2: x2, y2: y2 }, style: style, silent: true, z2: 6 };
      };
      var children = [{ type: 'rect', shape: { x: Math.min(from, to), y: y - half, width: Math.max(Math.abs(to - from), 1), height: 2 * half, r: 1.5 },
        style: back ? { fill: theme.paper, stroke: colour, lineWidth: 1.6 } : { fill: colour } }];
      if (api.value(7) + 1 < api.value(9)) children.push(line(to, y + half, to, y + thick - half, { stroke: theme.grey, lineWidth: 1 }));
      var right = Math.max(from, to);
      var low = api.value(2), high = api.value(3);
      if (isFinite(low) && isFinite(high)) {
        var ink = { stroke: theme.ink, lineWidth: 1.2 };
        var x1 = Math.max(at(low), area.x), x2 = Math.min(at(high), edge);
        children.push(line(x1, y, x2, y, ink));
        if (at(low) >= area.x - 0.5) children.push(line(x1, y - 3, x1, y + 3, ink)); // cut off without a cap: it goes on
        if (at(high) <= edge + 0.5) children.push(line(x2, y - 3, x2, y + 3, ink));
        right = Math.max(right, x2);
      }
      // To the right of the whisker: the margin has room for the longest label.
      children.push({ type: 'text', silent: true, z2: 7, style: { text: spec.labels[params.seriesIndex][params.dataIndex], x: right + 6, y: y,
        verticalAlign: 'middle', fill: theme.ink, font: '11px ' + FONT } });
      return { type: 'group', children: children };
    };
  }

  // What the tip of a mark shows is said to screen readers as well: one status line for the page, out of sight.
  var status;
  function say(tip, option, series, item) {
    if (!status) {
      status = document.createElement('p');
      status.className = 'said';
      status.setAttribute('role', 'status');
      document.body.appendChild(status);
    }
    var s = option.series[series], value = s.data[item];
    var box = tip({ seriesIndex: series, dataIndex: item, seriesName: s.name, name: (option.xAxis[0].data || [])[value[0]] || '', value: value });
    status.textContent = Array.from(box.children).map(function (line) { return line.textContent; }).join('. ');
  }

  root.dmgbenchMarks = { longestLabel: longestLabel, step: step, heat: heat, errorBar: errorBar, bands: bands, named: named, part: part, say: say };
})(typeof window !== 'undefined' ? window : this);
