/* One training, epoch by epoch: losses of all samples by cell, who is selected, and the ratios as they move. */
(function () {
  "use strict";
  const data = window.fairsieveTraining;
  const root = document.getElementById("training-figure");
  if (!data || !root) return;
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const losses = bytes(data.losses), packed = bytes(data.selections);
  const n = data.cells.length, frames = data.frames.length, row = packed.length / frames;
  const wrong = new Set(data.wrong);
  const isSelected = (frame, i) => (packed[frame * row + (i >> 3)] >> (7 - (i & 7))) & 1;
  const jitter = data.cells.map((_, i) => ((i * 2654435761) % 1000) / 1000 - 0.5);

  root.innerHTML =
    '<canvas role="img" aria-label="Losses of all samples in four rows, one for each label and group, with ' +
    'selected samples filled; below, ratios and disparity by epoch"></canvas>' +
    '<div class="training-controls"><button type="button" class="btn btn-sm btn-primary">Play</button>' +
    '<input type="range" min="0" max="' + (frames - 1) + '" value="0" aria-label="epoch">' +
    '<output></output></div>';
  const canvas = root.querySelector("canvas"), button = root.querySelector("button");
  const slider = root.querySelector("input"), output = root.querySelector("output");
  const context = canvas.getContext("2d");
  let frame = 0, shown = 0, timer = null;

  function colors() {
    const dark = document.documentElement.dataset.theme === "dark";
    return {
      text: dark ? "#dfe3e8" : "#30363d", faint: dark ? "#59636e" : "#c4cad1",
      right: dark ? "#79b8da" : "#2a6f97", wrong: dark ? "#f0a35e" : "#d1660f",
      lines: dark ? ["#79b8da", "#79b8da", "#f0a35e", "#f0a35e"] : ["#2a6f97", "#2a6f97", "#d1660f", "#d1660f"],
    };
  }

  function draw() {
    const width = root.clientWidth, narrow = width < 560, height = narrow ? 430 : 460;
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale; canvas.height = height * scale;
    canvas.style.width = width + "px"; canvas.style.height = height + "px";
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    const c = colors(), left = narrow ? 12 : 128, right = width - 12, rowHeight = narrow ? 62 : 58;
    context.font = "12px sans-serif"; context.textBaseline = "middle";
    const low = Math.floor(shown), high = Math.min(frames - 1, low + 1), part = shown - low;
    for (let cell = 0; cell < 4; cell++) {
      const y = 16 + cell * rowHeight + rowHeight / 2;
      context.fillStyle = c.text; context.textAlign = "left";
      context.fillText(data.names[cell], narrow ? left : 6, narrow ? y - rowHeight / 2 + 5 : y);
      context.strokeStyle = c.faint; context.lineWidth = 1; context.beginPath();
      context.moveTo(left, y + rowHeight / 2 - 3); context.lineTo(right, y + rowHeight / 2 - 3); context.stroke();
    }
    for (let pass = 0; pass < 2; pass++) {  // wrong labels on top
      for (let i = 0; i < n; i++) {
        if (wrong.has(i) !== (pass === 1)) continue;
        const value = losses[low * n + i] * (1 - part) + losses[high * n + i] * part;
        const x = left + Math.sqrt(value / 255) * (right - left);
        const y = 16 + data.cells[i] * rowHeight + rowHeight / 2 + 5 + jitter[i] * (rowHeight - 26);
        const chosen = isSelected(frame, i), color = pass ? c.wrong : c.right;
        context.globalAlpha = chosen ? 0.85 : 0.8;
        context.beginPath();
        if (chosen) {
          context.fillStyle = color; context.arc(x, y, pass ? 3.2 : 2.2, 0, 7); context.fill();
        } else {
          context.strokeStyle = color; context.lineWidth = pass ? 1.4 : 0.9;
          context.moveTo(x - 2.6, y - 2.6); context.lineTo(x + 2.6, y + 2.6);
          context.moveTo(x - 2.6, y + 2.6); context.lineTo(x + 2.6, y - 2.6); context.stroke();
        }
        context.globalAlpha = 1;
      }
    }
    const top = 16 + 4 * rowHeight + 34, bottom = height - 26;
    context.fillStyle = c.text; context.textAlign = "center";
    context.fillText("loss under the present model →   ● selected   × left out", (left + right) / 2, top - 20);
    series(c, left, right, top, bottom, narrow);
  }

  function series(c, left, right, top, bottom, narrow) {
    const x = (e) => left + (e / (frames - 1)) * (right - left), y = (v) => bottom - v * (bottom - top);
    context.strokeStyle = c.faint; context.lineWidth = 1; context.beginPath();
    context.moveTo(left, top); context.lineTo(left, bottom); context.lineTo(right, bottom); context.stroke();
    context.setLineDash([2, 3]); context.beginPath();
    context.moveTo(x(data.warmup), top); context.lineTo(x(data.warmup), bottom); context.stroke(); context.setLineDash([]);
    context.fillStyle = c.text; context.textAlign = "left";
    context.fillText("selection begins", x(data.warmup) + 4, top + 6);
    const line = (values, color, dash, thick) => {
      context.strokeStyle = color; context.lineWidth = thick; context.setLineDash(dash); context.beginPath();
      values.forEach((v, e) => (e ? context.lineTo(x(e), y(v)) : context.moveTo(x(e), y(v))));
      context.stroke(); context.setLineDash([]);
    };
    [[0, 0], [0, 1], [1, 0], [1, 1]].forEach(([a, b], k) =>
      line(data.frames.map((f) => f.ratios[a][b]), c.lines[k], b ? [] : [5, 3], 1.6));
    line(data.frames.map((f) => f.disparity), c.text, [1, 3], 2);
    context.textAlign = "right"; context.fillStyle = c.text;
    const note = narrow ? "ratios; dotted: disparity" : "ratios: blue label 0, orange label 1; dashed group 0; dotted: disparity on right labels";
    context.fillText(note, right, y(0.6));
    context.strokeStyle = c.text; context.lineWidth = 1; context.beginPath();
    context.moveTo(x(shown), top); context.lineTo(x(shown), bottom); context.stroke();
    context.textAlign = "center"; context.fillText("epoch", (left + right) / 2, bottom + 14);
  }

  function say() {
    const f = data.frames[frame];
    output.textContent = "epoch " + frame + ": " + f.selected + " of " + n + " selected, accuracy " +
      f.accuracy.toFixed(3) + ", disparity " + f.disparity.toFixed(3);
  }
  function show(value) {
    shown = Math.max(0, Math.min(frames - 1, value)); frame = Math.floor(shown + 1e-6);
    slider.value = frame; draw(); say();
  }
  function stop() { cancelAnimationFrame(timer); timer = null; button.textContent = "Play"; }
  function play() {
    if (shown >= frames - 1) show(0);
    button.textContent = "Pause";
    let last = null;
    const step = (now) => {
      if (last !== null) show(shown + (now - last) / 220);
      last = now;
      if (shown >= frames - 1) stop(); else timer = requestAnimationFrame(step);
    };
    timer = requestAnimationFrame(step);
  }
  button.addEventListener("click", () => (timer === null ? play() : stop()));
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  window.addEventListener("resize", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  show(30);
})();
