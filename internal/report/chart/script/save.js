// Saves a chart as a picture for an article: the same drawing at a fixed width on light paper, as
// `dmgbench report --svg` makes it, with the series that are shown on the page. Nothing leaves the page but the file.
(function (root) {
  'use strict';

  var WIDTH = 900; // CSS pixels
  var SCALE = 2;   // device pixels of a PNG for each of them

  // still is the chart without anything that moves, in the width of pictures.
  function still(c) {
    var report = root.dmgbenchReport;
    var made = report.picture(c.spec, WIDTH, report.LIGHT, report.measurer());
    var shown = c.chart.getOption().legend;
    if (shown && shown[0]) made.option.legend.selected = shown[0].selected;
    made.option.tooltip = { show: false };
    made.option.series.forEach(function (s) { s.progressive = 0; }); // all marks at once, before it is read
    return made;
  }

  function svg(c) {
    var made = still(c);
    var chart = root.echarts.init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height: made.height });
    chart.setOption(made.option);
    var text = chart.renderToSVGString();
    chart.dispose();
    return 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
  }

  function png(c) {
    var made = still(c);
    var chart = root.echarts.init(document.createElement('div'), null, { renderer: 'canvas', devicePixelRatio: SCALE, width: WIDTH, height: made.height });
    chart.setOption(made.option);
    var url = chart.getDataURL({ type: 'png', pixelRatio: SCALE, backgroundColor: root.dmgbenchReport.LIGHT.paper });
    chart.dispose();
    return url;
  }

  var FORMS = { SVG: { make: svg, suffix: '.svg' }, PNG: { make: png, suffix: '.png' } };

  // caption is the text of a picture, for below it in an article.
  function caption(c) {
    var title = c.spec.option.title;
    return [title.text + '.', title.subtext].concat(c.spec.notes).filter(Boolean).join(' ');
  }

  // buttons stand below a chart and work with the keyboard like any button.
  function buttons(c) {
    var bar = document.createElement('p');
    bar.className = 'copy';
    bar.append('Save as ');
    Object.keys(FORMS).forEach(function (form) {
      var button = document.createElement('button');
      button.type = 'button';
      button.textContent = form;
      button.addEventListener('click', function () {
        var link = document.createElement('a');
        link.download = c.spec.id + FORMS[form].suffix;
        link.href = FORMS[form].make(c);
        link.click();
      });
      bar.append(button, ' ');
    });
    var said = document.createElement('span');
    said.setAttribute('role', 'status');
    var copy = document.createElement('button');
    copy.type = 'button';
    copy.textContent = 'Copy caption';
    copy.addEventListener('click', function () { root.dmgbenchTables.copyText(caption(c), said); });
    bar.append(copy, said);
    c.place.after(bar);
  }

  root.dmgbenchSave = { svg: svg, png: png, caption: caption, buttons: buttons, charts: [] };
})(typeof window !== 'undefined' ? window : this);
