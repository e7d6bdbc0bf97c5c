// Draws the charts of the page. Options come as JSON, without functions; text is never parsed.
(function (root) {
  'use strict';

  var LIGHT = {
    paper: '#ffffff', ink: '#1a1f26', muted: '#5a6572', line: '#c3cad2', grid: '#eceff2', grey: '#9aa4af', onBar: '#ffffff', warn: '#b3261e',
    palette: ['#0b6bb8', '#c9570c', '#0f8a68', '#ad3f86', '#6f54b8', '#8a6d00', '#2492bd', '#66707c']
  };
  var DARK = {
    paper: '#13161a', ink: '#e6e9ed', muted: '#9ba6b2', line: '#48525d', grid: '#252b32', grey: '#76818d', onBar: '#0c0f12', warn: '#ff9d92',
    palette: ['#5caaf0', '#f0924f', '#3fc49c', '#e482bd', '#ab93f2', '#d9bb3f', '#85d3f2', '#a3adb8']
  };
  var PAPER = 660; // CSS pixels that fit between the margins of A4 and of US letter
  var SYMBOLS = ['circle', 'rect', 'triangle', 'diamond'];
  // No double quotes: a saved picture has this text in an attribute.
  var FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif";
  var SCALES = {
    'B': [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']],
    'B/s': [[1e12, 'TB/s'], [1e9, 'GB/s'], [1e6, 'MB/s'], [1e3, 'kB/s'], [1, 'B/s']],
    's': [[3600, 'h'], [60, 'min'], [1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns']]
  };

  // ---- numbers -------------------------------------------------------------

  function significant(v, digits) {
    if (!isFinite(v)) return '—';
    if (v === 0) return '0';
    var rounded = Number(v.toPrecision(digits));
    var places = digits - 1 - Math.floor(Math.log10(Math.abs(rounded)));
    return rounded.toFixed(Math.min(Math.max(places, 0), 12));
  }

  function human(v, unit) {
    var steps = SCALES[unit];
    if (!isFinite(v)) return '—';
    if (steps && !v) return '0 ' + unit;
    if (!steps) return Number(Number(v).toPrecision(4)).toString();
    for (var i = 0; i < steps.length; i++) {
      if (Math.abs(v) >= steps[i][0] * 0.9995 || i === steps.length - 1) {
        return significant(v / steps[i][0], 3) + ' ' + steps[i][1];
      }
    }
  }

  // Labels of an axis are round numbers; trailing zeros would only be noise.
  function tick(axis) {
    return function (v) {
      if (axis.names) return axis.names[v] || '';
      if (axis.human) {
        return human(v, axis.unit).replace(/(\.\d*?)0+(?= )/, '$1').replace(/\.(?= )/, '');
      }
      return String(Number((v / axis.factor).toPrecision(6)));
    };
  }

  function withUnit(axis, v) {
    if (axis.names) return axis.names[Math.round(v)] || '';
    if (axis.human || !axis.suffix || !isFinite(v)) return human(v, axis.unit);
    return significant(v / axis.factor, 3) + ' ' + axis.suffix;
  }

  // ---- text ----------------------------------------------------------------

  function measurer() {
    if (typeof document === 'undefined') return function (text, size) { return text.length * size * 0.55; };
    var context = document.createElement('canvas').getContext('2d');
    return function (text, size, weight) {
      context.font = (weight || 400) + ' ' + size + 'px ' + FONT;
      return context.measureText(text).width;
    };
  }

  function wrap(text, room, size, weight, measure) {
    var lines = [];
    var line = '';
    text.split(' ').forEach(function (word) {
      var candidate = line ? line + ' ' + word : word;
      if (measure(candidate, size, weight) <= room) { line = candidate; return; }
      if (line) lines.push(line);
      line = '';
      Array.from(word).forEach(function (letter) { // a word longer than a line is cut
        if (line && measure(line + letter, size, weight) > room) { lines.push(line); line = ''; }
        line += letter;
      });
    });
    if (line) lines.push(line);
    return lines;
  }

  // ---- marks ---------------------------------------------------------------

  // The values of a mark that is drawn here or in marks.js: x, y, low and high end of the interval, where a part begins, published value,
  // whether that is comparable, slot within the row, slots, and marks of the row.

  function whisker(colour, theme, spec) {
    return function (params, api) {
      var area = params.coordSys;
      var row = api.value(1), slot = api.value(7), slots = api.value(8);
      var place = api.barLayout({ barGap: '12%', barCategoryGap: '30%', count: slots })[slot];
      var y = api.coord([0, row])[1] + place.offsetCenter;
      var half = place.width / 2;
      var edge = area.x + area.width;
      var children = [];
      var at = function (v) { return api.coord([v, row])[0]; };
      var line = function (x1, y1, x2, y2, style) {
        children.push({ type: 'line', shape: { x1: x1, y1: y1, x2: x2, y2: y2 }, style: style, z2: 10, silent: true });
      };
      var bar = api.value(0);
      var label = spec.labels[params.seriesIndex][params.dataIndex];
      var end = at(bar);
      var wide = label.length * 6.4 + 10;
      var inside = end - area.x > wide;
      children.push({
        type: 'text', z2: 11, silent: true,
        style: {
          text: label, x: inside ? area.x + 4 : Math.max(end, Math.min(at(api.value(3) || 0), edge)) + 6, y: y, verticalAlign: 'middle',
          fill: inside ? theme.onBar : theme.ink, font: '600 11px ' + FONT,
          backgroundColor: inside ? colour : undefined, padding: inside ? [0, 2] : 0 // a wide interval reaches below it
        }
      });
      var low = api.value(2), high = api.value(3);
      if (isFinite(low) && isFinite(high)) {
        var ink = { stroke: theme.ink, lineWidth: 1.4 };
        var cap = Math.min(half * 0.55, 5);
        var x1 = at(low), x2 = Math.min(at(high), edge);
        line(x1, y, x2, y, ink);
        line(x1, y - cap, x1, y + cap, ink);
        if (at(high) <= edge + 0.5) {
          line(x2, y - cap, x2, y + cap, ink);
        } else { // an end cap would say that it ends here
          line(x2 - 6, y - 4, x2, y, ink);
          line(x2 - 6, y + 4, x2, y, ink);
        }
      }
      var published = api.value(5);
      if (isFinite(published) && published > 0) {
        var comparable = api.value(6) === 1;
        var x = at(published);
        if (x <= edge + 0.5) {
          children.push({
            type: 'polygon', z2: 12, silent: true,
            shape: { points: [[x, y - 5.5], [x + 5, y], [x, y + 5.5], [x - 5, y]] },
            style: { fill: comparable ? theme.ink : theme.paper, stroke: comparable ? theme.paper : theme.grey, lineWidth: comparable ? 1 : 1.6 }
          });
        } else {
          children.push({ type: 'polygon', z2: 12, silent: true, shape: { points: [[edge + 5, y - 4], [edge + 11, y], [edge + 5, y + 4]] }, style: { fill: theme.grey } });
          children.push({
            type: 'text', z2: 12, silent: true,
            style: { text: significant(published / spec.x.factor, 3), x: edge + 15, y: y, verticalAlign: 'middle', fill: theme.muted, font: '11px ' + FONT }
          });
        }
      }
      return { type: 'group', children: children };
    };
  }

  // The tooltip is built of elements, so that names stay text.
  function tip(spec) {
    return function (params) {
      var box = document.createElement('div');
      box.className = 'tooltip';
      var add = function (tag, text) {
        if (!text) return;
        var e = document.createElement(tag);
        e.textContent = text;
        box.appendChild(e);
      };
      var own = (spec.tips[params.seriesIndex] || [])[params.dataIndex];
      if (!spec.headed || !own) add('strong', (spec.flipped && (spec.y ? withUnit(spec.y, params.value[1]) : spec.option.yAxis[0].data[params.value[1]])) || params.seriesName);
      if (own) {
        own.split('\n').forEach(function (line, i) { add(spec.headed && !i ? 'strong' : 'div', line); });
      } else if (Array.isArray(params.value)) {
        if (spec.x) add('div', withUnit(spec.x, params.value[0]));
        if (spec.y && !spec.y.names) add('div', withUnit(spec.y, params.value[1]));
      } else {
        add('div', params.name);
        if (spec.y && params.value != null) add('div', withUnit(spec.y, params.value));
      }
      return box;
    };
  }

  // ---- options -------------------------------------------------------------

  // What a comparison found has one colour in every picture, whatever else is in it.
  var OUTCOMES = { 'the same': 0, worse: 1, better: 2, changed: 3 };

  function colours(series, theme) {
    var seen = [], classes = 0;
    var steps = series.filter(function (s) { return /^heat:/.test(s.id); }).length;
    return series.map(function (s) {
      var role = s.id.split(':')[0];
      if (role === 'heat') {
        var shade = root.dmgbenchMarks.step(theme === DARK, classes++, steps);
        return { colour: shade[0], ink: shade[1], symbol: 'rect' };
      }
      if (role === 'published' || role === 'live' || role === 'canary') return { colour: theme.ink, symbol: 'diamond' };
      if (role === 'uncomparable' || role === 'faint' || role === 'level' || role === 'ideal' || role === 'prediction') return { colour: theme.grey, symbol: 'diamond' };
      if (role === 'warned') return { colour: theme.warn, symbol: 'circle' };
      if (role === 'outcome') return { colour: theme.palette[OUTCOMES[s.name] || 0], symbol: 'circle' };
      var i = seen.indexOf(s.name);
      if (i < 0) i = seen.push(s.name) - 1;
      return { colour: theme.palette[i % theme.palette.length], symbol: SYMBOLS[Math.floor(i / theme.palette.length) % SYMBOLS.length] };
    });
  }

  function dress(s, look, theme, spec) {
    var role = s.id.split(':')[0];
    var solid = { color: look.colour };
    s.animation = false;
    s.emphasis = { disabled: true };
    switch (role) {
      case 'bar': s.barGap = '12%'; s.barCategoryGap = '30%'; s.itemStyle = { color: look.colour, borderRadius: spec.flipped ? [0, 2, 2, 0] : [2, 2, 0, 0] }; s.barMaxWidth = 26; break;
      case 'whisker': s.itemStyle = solid; s.renderItem = whisker(look.colour, theme, spec); s.silent = true; s.z = 5; break;
      case 'error': s.itemStyle = solid; s.renderItem = root.dmgbenchMarks.errorBar(look.colour); s.silent = true; s.z = 1; break;
      case 'heat': s.itemStyle = solid; s.renderItem = root.dmgbenchMarks.heat(look.colour, look.ink, spec); break;
      case 'part': s.itemStyle = solid; s.renderItem = root.dmgbenchMarks.part(look.colour, theme, spec); break;
      case 'line': s.itemStyle = solid; s.lineStyle = { color: look.colour, width: 2 }; s.symbol = look.symbol; s.symbolSize = 6; s.showAllSymbol = true; s.connectNulls = false; break;
      case 'gap': s.itemStyle = solid; s.symbol = 'none'; s.lineStyle = { color: look.colour, width: 1, type: 'dotted', opacity: 0.7 }; s.connectNulls = true; s.silent = true; break;
      case 'bands': root.dmgbenchMarks.bands(s, look, theme, spec.count); break;
      case 'outcome':
      case 'dots': s.itemStyle = solid; s.lineStyle = { width: 0 }; s.symbol = look.symbol; s.symbolSize = 7; s.showAllSymbol = true; break;
      case 'points': s.itemStyle = { color: look.colour, opacity: spec.canvas ? 0.35 : 0.5 }; s.symbol = look.symbol; s.symbolSize = spec.canvas ? 3.5 : 5; break;
      case 'canary': s.itemStyle = solid; s.symbol = look.symbol; s.symbolSize = 7; break;
      case 'warned': s.itemStyle = { color: 'transparent', borderColor: look.colour, borderWidth: 1.8 }; s.symbol = 'circle'; s.symbolSize = 13; s.z = 3; break;
      case 'named': s.itemStyle = solid; s.symbolSize = 9; s.symbol = look.symbol; root.dmgbenchMarks.named(s, theme, spec.option.xAxis[0]); break;
      case 'fit': s.itemStyle = solid; s.symbol = 'none'; s.lineStyle = { color: look.colour, width: 1.8 }; s.silent = true; break;
      case 'fit2': s.itemStyle = solid; s.symbol = 'none'; s.lineStyle = { color: look.colour, width: 1.4, type: 'dashed' }; s.silent = true; break;
      case 'faint': s.itemStyle = solid; s.symbol = 'none'; s.lineStyle = { color: look.colour, width: 1.6, type: 'dashed' }; s.silent = true; break;
      case 'level': s.itemStyle = solid; s.symbol = 'none'; s.lineStyle = { color: look.colour, width: 1.2 }; s.silent = true; s.z = 1; break;
      case 'ideal': s.itemStyle = solid; s.symbol = 'none'; s.lineStyle = { color: look.colour, width: 1.3, type: 'dotted' }; s.silent = true; s.z = 1; break;
      case 'live': s.itemStyle = solid; s.lineStyle = { color: look.colour, width: 1.2 }; s.symbol = 'none'; s.connectNulls = true; break;
      case 'published': s.itemStyle = solid; s.symbol = 'diamond'; s.symbolSize = 10; break;
      case 'prediction':
      case 'uncomparable': s.itemStyle = { color: theme.paper, borderColor: theme.grey, borderWidth: 1.6 }; s.symbol = 'diamond'; s.symbolSize = 10; break;
    }
    return s;
  }

  function axisStyle(axis, theme, horizontal) {
    axis.nameTextStyle = { color: theme.muted, fontSize: 12, fontFamily: FONT };
    axis.axisLine = { show: horizontal || axis.type === 'category', onZero: false, lineStyle: { color: theme.line } };
    axis.axisTick = Object.assign({ show: axis.type !== 'category', lineStyle: { color: theme.line } }, axis.axisTick);
    axis.splitLine = { show: axis.type !== 'category', lineStyle: { color: theme.grid } };
    axis.minorTick = { show: false };
    axis.axisLabel = Object.assign({ color: theme.muted, fontSize: 11.5, fontFamily: FONT, hideOverlap: true }, axis.axisLabel);
  }

  // bind sets the functions of the options, which JSON cannot carry.
  function bind(option, spec) {
    [[option.xAxis[0], spec.x], [option.yAxis[0], spec.y]].forEach(function (pair) {
      var axis = pair[0], own = pair[1];
      if (!own) return;
      axis.axisLabel = { formatter: tick(own) };
      if (own.ticks) {
        axis.axisLabel.customValues = own.ticks;
        axis.axisTick = { customValues: own.ticks };
      }
    });
    option.tooltip.formatter = tip(spec);
  }

  // What the legend shows of lines without marks: the library would put a dot on them that the picture has not.
  var SOLID = 'path://M0 4h18v2h-18z', DASHED = 'path://M0 4h5v2h-5zM6.5 4h5v2h-5zM13 4h5v2h-5z', DOTTED = 'path://M0 4h2v2h-2zM4 4h2v2h-2zM8 4h2v2h-2zM12 4h2v2h-2zM16 4h2v2h-2z';
  var STROKES = { fit: SOLID, level: SOLID, live: SOLID, fit2: DASHED, faint: DASHED, ideal: DOTTED, gap: DOTTED };

  function entry(name, option) {
    var own = option.series.filter(function (s) { return s.name === name; })[0];
    var icon = own && STROKES[own.id.split(':')[0]];
    return icon ? { name: name, icon: icon } : { name: name };
  }

  function legend(option, width, theme, measure) {
    var names = option.legend.data || [];
    var rows = names.length ? 1 : 0, x = 0;
    var most = Math.min(width - 40, 300);
    names.forEach(function (name) {
      var item = Math.min(measure(name, 12), most) + 46;
      if (x && x + item > width) { rows++; x = 0; }
      x += item;
    });
    option.legend = {
      show: names.length > 0, data: names.map(function (name) { return entry(name, option); }), left: 0, type: 'plain', itemGap: 16, itemWidth: 18, itemHeight: 10, padding: 0, width: width,
      itemStyle: { opacity: 1 }, textStyle: { color: theme.ink, fontSize: 12, fontFamily: FONT, width: most, overflow: 'truncate' }
    };
    return rows * 22;
  }

  // lastWords keeps the last word of each line of a name: the number of a version.
  function lastWords(name) {
    return name.split('\n').map(function (line) { return line.split(' ').pop().slice(0, 10); }).join('\n');
  }

  // prepare turns a chart's data into options for one width and theme: headings and
  // notes are wrapped by us, since the library does not make room for them.
  function prepare(spec, width, theme, measure) {
    spec = JSON.parse(JSON.stringify(spec));
    var option = spec.option;
    var narrow = width < 520;
    if (narrow && spec.x && spec.x.names) spec.x.names = spec.x.names.map(lastWords);
    var heading = wrap(option.title.text, width, narrow ? 15 : 17, 650, measure);
    var sub = wrap(option.title.subtext || '', width, 12.5, 400, measure);
    var notes = [];
    spec.notes.forEach(function (n) { notes = notes.concat(wrap(n, width, 11, 400, measure)); });
    var looks = colours(option.series, theme);
    option.series.forEach(function (s, i) { dress(s, looks[i], theme, spec); });
    bind(option, spec);
    axisStyle(option.xAxis[0], theme, true);
    axisStyle(option.yAxis[0], theme, false);
    var headHeight = heading.length * (narrow ? 20 : 23) + sub.length * 17 + 10;
    var legendHeight = legend(option, width, theme, measure);
    option.legend.top = headHeight + 2;
    option.legend.selectedMode = !spec.fixed;
    var notesHeight = notes.length * 15 + (notes.length ? 10 : 0);
    var yName = option.yAxis[0].name && option.yAxis[0].type !== 'category';
    // The name of the y axis stands above it, flush with the heading, where it needs no turning and no room beside.
    if (yName) yName = option.yAxis[0].name;
    option.yAxis[0].name = '';
    option.xAxis[0].nameGap = option.xAxis[0].type === 'category' ? 30 : 28;
    option.xAxis[0].nameLocation = 'middle';
    if (option.xAxis[0].type === 'category') {
      var names = option.xAxis[0].data || [];
      var widest = names.reduce(function (most, n) { return Math.max(most, measure(String(n), 11.5)); }, 0);
      if (names.length <= 24) { // every step has its name; where they do not fit they are turned
        Object.assign(option.xAxis[0].axisLabel, { interval: 0, hideOverlap: false, overflow: 'truncate', width: 110,
          rotate: (widest + 8) * names.length > width - 60 - (spec.flipped ? Math.min(width * 0.34, 230) : 0) ? 40 : 0 });
        if (option.xAxis[0].axisLabel.rotate) option.xAxis[0].nameGap = 28 + Math.round(widest * 0.64);
      }
    }
    if (spec.x && spec.x.names) option.xAxis[0].axisLabel.lineHeight = 15; // names may have two lines
    if (spec.flipped) {
      var side = Math.round(Math.min(width * 0.34, 230));
      Object.assign(option.yAxis[0].axisLabel, { width: side, overflow: 'break', lineHeight: 14, color: theme.ink, interval: 0, hideOverlap: false });
      var rows = option.yAxis[0].data || (spec.y && spec.y.names) || [];
      var lines = rows.reduce(function (most, n) { return Math.max(most, wrap(String(n), side - 4, 11.5, 400, measure).length); }, 1);
      spec.height = Math.max(spec.height, rows.length * (lines * 14 + 4) + 34); // names of several lines do not lie on each other
    }
    var above = headHeight + legendHeight + (yName ? 34 : 8);
    var below = notesHeight + (option.xAxis[0].name ? 26 : 6);
    if (spec.x && spec.x.names) { // names at few places: the library counts the others, which are empty, and makes no room
      below += 15 * spec.x.names.reduce(function (most, n) { return Math.max(most, n.split('\n').length); }, 1) - 6;
    }
    var role = ((option.series[0] || {}).id || '').split(':')[0];
    var right = role === 'heat' ? 8 : spec.flipped ? 52 : 22;
    if (role === 'part') right = Math.max(right, root.dmgbenchMarks.longestLabel(spec) * 6.3 + 12);
    option.grid = { left: 2, right: right, top: above, bottom: below, containLabel: true };
    var height = above + below + spec.height + 24;
    option.title = [
      { text: heading.join('\n'), subtext: sub.join('\n'), left: 0, top: 0, padding: 0, itemGap: 4,
        textStyle: { color: theme.ink, fontSize: narrow ? 15 : 17, lineHeight: narrow ? 20 : 23, fontWeight: 650, fontFamily: FONT },
        subtextStyle: { color: theme.muted, fontSize: 12.5, lineHeight: 17, fontFamily: FONT } },
      { text: notes.join('\n'), left: 0, top: height - notesHeight, padding: 0,
        textStyle: { color: theme.muted, fontSize: 11, lineHeight: 15, fontWeight: 400, fontFamily: FONT } }
    ];
    if (yName) {
      option.title.push({ text: yName, left: 0, top: headHeight + legendHeight + 6, padding: 0,
        textStyle: { color: theme.muted, fontSize: 12, lineHeight: 16, fontWeight: 400, fontFamily: FONT } });
    }
    option.tooltip = Object.assign(option.tooltip, { confine: true, backgroundColor: theme.paper, borderColor: theme.line, textStyle: { color: theme.ink, fontSize: 13 }, transitionDuration: 0 });
    option.backgroundColor = theme.paper;
    option.textStyle = { fontFamily: FONT };
    option.animation = false;
    return { option: option, height: height };
  }

  var MARGIN = 24; // CSS pixels around a saved picture

  // picture prepares a chart for a file: with a margin, which the page has around it anyway.
  function picture(spec, width, theme, measure) {
    var made = prepare(spec, width - 2 * MARGIN, theme, measure);
    var o = made.option;
    made.height += 2 * MARGIN;
    o.title.concat(o.legend).forEach(function (part) { part.left += MARGIN; part.top += MARGIN; });
    ['left', 'right', 'top', 'bottom'].forEach(function (side) { o.grid[side] += MARGIN; });
    return made;
  }

  // ---- page ----------------------------------------------------------------

  function start() {
    var dark = root.matchMedia('(prefers-color-scheme: dark)');
    var measure = measurer();
    var charts = [];
    var printing = false;

    function draw(c) {
      var width = Math.max(Math.floor(c.place.clientWidth), 240);
      if (printing) width = PAPER; // the page is laid out for the screen still when this is called
      var made = prepare(c.spec, width, dark.matches && !printing ? DARK : LIGHT, measure);
      c.place.style.height = made.height + 'px';
      if (!c.chart) c.chart = root.echarts.init(c.place, null, { renderer: c.spec.canvas ? 'canvas' : 'svg' });
      c.chart.setOption(made.option, { notMerge: true, lazyUpdate: true }); // resize draws it, once
      c.chart.resize({ width: width, height: made.height });
      c.width = width;
    }

    // The arrow keys walk through the marks of a focused chart.
    function keys(c, event) {
      var step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === 'Escape') c.chart.dispatchAction({ type: 'hideTip' });
      if (!step) return;
      event.preventDefault();
      var flat = [];
      c.spec.option.series.forEach(function (s, i) {
        if (/^(bar|line|bands|dots|outcome|points|canary|warned|named|prediction|published|uncomparable|heat|part)/.test(s.id)) (s.data || []).forEach(function (d, j) { if (d !== null && d[1] !== null) flat.push([i, j]); });
      });
      if (!flat.length) return;
      c.at = ((c.at === undefined ? (step > 0 ? -1 : 0) : c.at) + step + flat.length) % flat.length;
      c.chart.dispatchAction({ type: 'showTip', seriesIndex: flat[c.at][0], dataIndex: flat[c.at][1] });
      root.dmgbenchMarks.say(tip(c.spec), c.spec.option, flat[c.at][0], flat[c.at][1]);
    }

    document.querySelectorAll('script[type="application/json"][data-for]').forEach(function (block) {
      var c = { spec: JSON.parse(block.textContent), place: document.getElementById(block.getAttribute('data-for')) };
      charts.push(c);
      draw(c);
      root.dmgbenchSave.buttons(c);
      c.place.addEventListener('keydown', function (event) { keys(c, event); });
      c.place.addEventListener('blur', function () { c.chart.dispatchAction({ type: 'hideTip' }); });
    });
    function all() { charts.forEach(draw); }
    root.dmgbenchSave.charts = charts;
    root.dmgbenchTables.copyButtons();
    root.dmgbenchTables.sortButtons();
    dark.addEventListener('change', all);
    root.addEventListener('beforeprint', function () {
      printing = true;
      document.querySelectorAll('details:not([open])').forEach(function (d) { d.open = true; d.setAttribute('data-shut', ''); });
      all();
    });
    root.addEventListener('afterprint', function () {
      printing = false;
      document.querySelectorAll('details[data-shut]').forEach(function (d) { d.open = false; d.removeAttribute('data-shut'); });
      all();
    });
    function fit() { charts.forEach(function (c) { if (Math.abs(c.place.clientWidth - c.width) > 1) draw(c); }); }
    // In a frame of its own: the observer must not change what it observes.
    new ResizeObserver(function () { root.requestAnimationFrame(fit); }).observe(document.body);
  }

  root.dmgbenchReport = { prepare: prepare, picture: picture, measurer: measurer, human: human, LIGHT: LIGHT, DARK: DARK };
  if (typeof document !== 'undefined') start();
})(typeof window !== 'undefined' ? window : this);
