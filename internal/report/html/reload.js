// Loads a page of `dmgbench watch --serve` again when its server has a newer one: between uses only, since that takes
// the focus and what the user opened away. The browser keeps the position. Without its server the page stays,
// and shows that it does.
(function () {
  'use strict';

  var INTERVAL = 10000; // milliseconds
  var version = document.currentScript.dataset.version;
  var used = 0;

  ['keydown', 'pointerdown', 'touchmove', 'wheel'].forEach(function (kind) {
    addEventListener(kind, function () { used = Date.now(); }, { capture: true, passive: true });
  });

  function isUsed() {
    return document.hidden || document.activeElement !== document.body || Date.now() - used < INTERVAL;
  }

  // showEnd is shown once: a server that is started again has another address.
  function showEnd() {
    clearInterval(timer);
    var p = document.createElement('p');
    p.className = 'notice';
    p.setAttribute('role', 'status');
    p.textContent = 'dmgbench watch --serve has ended: this page is not updated any more.';
    document.querySelector('main').prepend(p);
  }

  var timer = setInterval(function () {
    if (isUsed()) return;
    fetch('', { method: 'HEAD' }).then(function (answer) {
      if (answer.ok && answer.headers.get('ETag') !== version && !isUsed()) location.reload();
    }, showEnd);
  }, INTERVAL);
})();
