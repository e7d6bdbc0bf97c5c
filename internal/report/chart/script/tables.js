// Lets people sort a table, and take it along as HTML, Markdown or TSV. Text is read and written as text.
(function (root) {
  'use strict';

  // copyText copies, and says in an element whether it did.
  function copyText(text, said) {
    function done(ok) { said.textContent = ok ? ' copied' : ' could not be copied'; }
    function old() { // pages that are no secure context have no clipboard
      var area = document.createElement('textarea');
      area.value = text;
      document.body.appendChild(area);
      area.select();
      done(document.execCommand('copy'));
      area.remove();
    }
    if (!root.navigator.clipboard) return old();
    root.navigator.clipboard.writeText(text).then(function () { done(true); }, old);
  }

  // copyButtons stand below each table and work with the keyboard like any button.
  function copyButtons() {
    document.querySelectorAll('.scroll > table').forEach(function (table) {
      var bar = document.createElement('p');
      bar.className = 'copy';
      var forms = table.parentNode.querySelector('script.forms');
      if (!forms) return;
      bar.append('Copy as ');
      ['HTML', 'Markdown', 'TSV'].forEach(function (form) {
        var button = document.createElement('button');
        button.type = 'button';
        button.textContent = form;
        button.addEventListener('click', function () {
          copyText(JSON.parse(forms.textContent)[form], said);
        });
        bar.append(button, ' ');
      });
      var said = document.createElement('span');
      said.setAttribute('role', 'status');
      bar.append(said);
      table.parentNode.after(bar);
    });
  }

  var UNITS = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 1024, Mi: 1048576, Gi: 1073741824, Ti: 1099511627776, m: 1e-3, 'µ': 1e-6, n: 1e-9 };

  // valueOf is the number that a cell begins with, in base units; NaN where it begins with none.
  function valueOf(td) {
    var first = td.querySelector('bdi') || td;
    var m = /^[^\d−-]*([−-]?)(\d[\d\u202F]*(?:\.\d+)?)\s*([^\s]*)/.exec(first.textContent.trim());
    if (!m) return NaN;
    var scale = { min: 60, h: 3600 }[m[3]] || UNITS[(/^(k|[KMGT]i?|m|µ|n)(?:B|s)/.exec(m[3]) || [])[1]] || 1;
    return (m[1] ? -1 : 1) * Number(m[2].replace(/\u202F/g, '')) * scale;
  }

  // sorter orders the rows of a table by a column: numbers by size, words by letter, what is empty last.
  function sorter(table) {
    var body = table.tBodies[0], own = Array.from(body.rows), last = '';
    var names = own.map(function (tr) { return (last = tr.cells[0].textContent.trim() || last); });
    return function (column, direction, numbers) {
      own.forEach(function (tr, i) { // a case that is named once for several rows is named in each while they are apart
        if (tr.cells[0].dataset.named === undefined) tr.cells[0].dataset.named = tr.cells[0].textContent.trim() ? 'yes' : 'no';
        if (tr.cells[0].dataset.named === 'no') tr.cells[0].textContent = direction ? names[i] : '';
      });
      table.classList.toggle('sorted', direction !== 0);
      var keys = new Map(own.map(function (tr, i) {
        return [tr, { at: i, text: column ? tr.cells[column].textContent.trim() : names[i], value: numbers ? valueOf(tr.cells[column]) : NaN }];
      }));
      var some = own.some(function (tr) { return !isNaN(keys.get(tr).value); });
      var order = own.slice().sort(function (a, b) {
        var x = keys.get(a), y = keys.get(b);
        if (!direction) return x.at - y.at;
        if (some && (isNaN(x.value) || isNaN(y.value))) return isNaN(x.value) - isNaN(y.value) || x.at - y.at;
        if (!some && (!x.text || !y.text)) return !x.text - !y.text || x.at - y.at;
        var by = some ? x.value - y.value : x.text.localeCompare(y.text, 'en', { numeric: true });
        return direction * by || x.at - y.at;
      });
      body.append.apply(body, order);
    };
  }

  // sortButtons make the headings of columns buttons: once up, once down, and once as it was.
  function sortButtons() {
    document.querySelectorAll('.scroll > table').forEach(function (table) {
      if (!table.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 2) return;
      var sort = sorter(table);
      var heads = Array.from(table.tHead.rows[table.tHead.rows.length - 1].cells);
      heads.forEach(function (th, i) {
        var button = document.createElement('button');
        button.type = 'button';
        button.className = 'sort';
        button.append.apply(button, Array.from(th.childNodes));
        th.append(button);
        button.addEventListener('click', function () {
          var next = { ascending: 'descending', descending: '' }[th.getAttribute('aria-sort')];
          if (next === undefined) next = 'ascending';
          heads.forEach(function (h) { h.removeAttribute('aria-sort'); });
          if (next) th.setAttribute('aria-sort', next);
          sort(i, { ascending: 1, descending: -1 }[next] || 0, th.classList.contains('number'));
        });
      });
    });
  }

  root.dmgbenchTables = { copyButtons: copyButtons, sortButtons: sortButtons, copyText: copyText };
})(typeof window !== 'undefined' ? window : this);
