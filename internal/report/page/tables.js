// Lets people take a table along as HTML, Markdown or TSV. Text is read and written as text.
(function (root) {
  'use strict';

  // rowsOf reads a table as text; a case that is named once for several rows is named in each.
  function rowsOf(table) {
    var last = '';
    return Array.from(table.querySelectorAll('tr')).map(function (tr) {
      var cells = [];
      Array.from(tr.children).forEach(function (td) {
        var copy = td.cloneNode(true);
        copy.querySelectorAll('sup').forEach(function (e) { e.remove(); });
        copy.querySelectorAll('.sub').forEach(function (e) { e.textContent = ' (' + e.textContent + ')'; });
        cells.push(copy.textContent.replace(/\s+/g, ' ').trim());
        for (var i = 1; i < td.colSpan; i++) cells.push('');
      });
      if (tr.parentNode.tagName === 'TBODY') {
        if (cells[0]) last = cells[0]; else cells[0] = last;
      }
      return cells;
    });
  }

  function asText(table, form) {
    var rows = rowsOf(table);
    if (form === 'TSV') return rows.map(function (r) { return r.join('\t'); }).join('\n') + '\n';
    if (form === 'Markdown') {
      var heads = table.querySelectorAll('thead tr').length;
      var head = rows[heads - 1].map(function (title, i) {
        for (var g = i; heads > 1 && g > 0 && !rows[0][g]; ) g--;
        return (heads > 1 && rows[0][g] ? rows[0][g] + ' ' : '') + title;
      });
      var line = function (r) { return '| ' + r.map(function (c) { return c.replace(/([\\|<>*_`[\]])/g, '\\$1'); }).join(' | ') + ' |'; };
      return [line(head), '|' + head.map(function () { return '---|'; }).join('')].concat(rows.slice(heads).map(line)).join('\n') + '\n';
    }
    var escape = function (c) { return c.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;'); };
    var count = table.querySelectorAll('thead tr').length;
    return '<table>\n' + rows.map(function (r, i) {
      var tag = i < count ? 'th' : 'td';
      return '<tr>' + r.map(function (c) { return '<' + tag + '>' + escape(c) + '</' + tag + '>'; }).join('') + '</tr>';
    }).join('\n') + '\n</table>\n';
  }

  function copyText(text, done) {
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
      // Tables of the plan bring their forms along.
      var forms = table.parentNode.querySelector('script.forms');
      var ready = forms && JSON.parse(forms.textContent);
      bar.append('Copy as ');
      ['HTML', 'Markdown', 'TSV'].forEach(function (form) {
        var button = document.createElement('button');
        button.type = 'button';
        button.textContent = form;
        button.addEventListener('click', function () {
          copyText(ready ? ready[form] : asText(table, form), function (ok) { said.textContent = ok ? ' copied' : ' could not be copied'; });
        });
        bar.append(button, ' ');
      });
      var said = document.createElement('span');
      said.setAttribute('role', 'status');
      bar.append(said);
      table.parentNode.after(bar);
    });
  }

  root.dmgbenchTables = { copyButtons: copyButtons, asText: asText };
})(typeof window !== 'undefined' ? window : this);
