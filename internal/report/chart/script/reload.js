// Loads a page of `dmgbench watch --serve` again when its server has a newer one: between uses only, since that takes
// the focus and what the user opened away. The browser keeps the position. Without its server the page stays.
(function (root) {
  'use strict';

  var INTERVAL = 10000; // milliseconds
  var version = root.document && root.document.body && root.document.body.dataset.version; // not of a file
  var used = 0;
  if (!version) return;

  ['keydown', 'pointerdown', 'touchmove', 'wheel'].forEach(function (kind) {
    root.addEventListener(kind, function () { used = Date.now(); }, { capture: true, passive: true });
  });

  function isUsed() {
    return document.hidden || document.activeElement !== document.body || Date.now() - used < INTERVAL;
  }

  root.setInterval(function () {
    if (isUsed()) return;
    root.fetch('', { method: 'HEAD' }).then(function (answer) {
      if (answer.ok && answer.headers.get('ETag') !== version && !isUsed()) root.location.reload();
    }, function () {}); // the server has ended
  }, INTERVAL);
})(typeof window !== 'undefined' ? window : this);
