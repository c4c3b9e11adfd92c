// What the console does beside htmx: words that explain themselves, folds that stay open, and the
// live page of a job.
// Without it every page works, too.
"use strict";

// A word shows its meaning when it is pressed, also without scripts; here also when it is pointed at
// or has the focus, and beside it.
(() => {
  const GAP_PX = 6;
  const WAIT_MS = 250;
  let shown = null;
  let beside = null;
  let waits = 0;

  function place(word, meaning) {
    const at = word.getBoundingClientRect();
    meaning.classList.add("placed");
    const box = meaning.getBoundingClientRect();
    const below = at.bottom + GAP_PX + box.height <= innerHeight || at.top < box.height + GAP_PX;
    meaning.style.top = `${below ? at.bottom + GAP_PX : at.top - GAP_PX - box.height}px`;
    meaning.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.width - 8))}px`;
  }

  function show(word) {
    const meaning = word.popoverTargetElement;
    if (meaning && !meaning.matches(":popover-open")) {
      meaning.showPopover();
      place(word, meaning);
      shown = meaning;
      beside = word;
    }
  }

  function hide() {
    clearTimeout(waits);
    if (shown && shown.matches(":popover-open")) {
      shown.hidePopover();
    }
    shown = null;
  }

  if (!("popover" in HTMLElement.prototype)) {
    return;
  }
  document.addEventListener("pointerover", (event) => {
    const word = event.target.closest("button.word");
    clearTimeout(waits);
    if (word && event.pointerType === "mouse") {
      waits = setTimeout(show, WAIT_MS, word);
    } else if (shown && !event.target.closest(".meaning")) {
      waits = setTimeout(hide, WAIT_MS);
    }
  });
  document.addEventListener("focusin", (event) => {
    if (event.target.matches("button.word:focus-visible")) {
      show(event.target);
    } else if (!event.target.closest(".meaning")) {
      hide();
    }
  });
  // Pressed: it stays, instead of being closed by the press that followed the pointing.
  document.addEventListener("click", (event) => {
    const word = event.target.closest("button.word");
    if (word && word.popoverTargetElement) {
      event.preventDefault();
      clearTimeout(waits);
      if (!word.popoverTargetElement.matches(":popover-open")) {
        show(word);
      }
    }
  });
  // Also after the focus went to a word out of sight, which scrolled there.
  addEventListener("scroll", () => shown && shown.matches(":popover-open") && place(beside, shown), { passive: true, capture: true });
})();

// What a reader has unfolded stays open where htmx brings a part of the page anew: found by the id of
// its summary, by which htmx also gives the focus back.
(() => {
  const unfolded = new Set();

  // Heard on its way down: this event does not rise.
  document.addEventListener(
    "toggle",
    ({ target }) => {
      const id = target.firstElementChild?.id;
      if (target.open && id) {
        unfolded.add(id);
      } else {
        unfolded.delete(id);
      }
    },
    true,
  );
  document.addEventListener("htmx:oobAfterSwap", () => {
    for (const id of unfolded) {
      const summary = document.getElementById(id);
      if (summary) {
        summary.parentElement.open = true;
      }
    }
  });
})();

(() => {
  const live = document.getElementById("live");
  if (!live || !window.EventSource) {
    return;
  }
  live.classList.add("scripted");
  // How often the page is fetched anew at most: when its state changes, and for cases that end
  // between trials. Each time costs the host that may be measuring some milliseconds.
  const SOON_MS = 2000;
  const RARELY_MS = 10000;
  const SAMPLES_MOST = 600;
  const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];
  const PREFIXES = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
  const SMALL = [[1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
  const SHORT = { "operation/s": "op/s", operation: "op", "byte/s": "B/s", byte: "B" };

  // As hostbench/base/units.py writes figures.
  function human(value, unit) {
    if (value === null || value === undefined) {
      return "–";
    }
    if (unit === "1" || value === 0) {
      return `${+value.toPrecision(4)}`;
    }
    const prefixes = unit === "s" ? PREFIXES.concat(SMALL) : PREFIXES;
    const found = prefixes.find(([factor]) => Math.abs(value) >= factor) || prefixes.at(-1);
    return `${(value / found[0]).toPrecision(4)} ${found[1]}${SHORT[unit] || unit}`;
  }

  // Ticks are round: 60 Gop/s, not 60.00 Gop/s.
  function tick(value) {
    const [number, ...rest] = human(value, unit).split(" ");
    return [`${+number}`, ...rest].join(" ");
  }

  function clock(seconds) {
    return new Date(seconds * 1000).toISOString().slice(11, 19);
  }

  const data = [[], [], []];
  let unit = "1";
  let charts = null;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function chart(id, height, values, limits, paths) {
    const element = document.getElementById(id);
    const axis = { stroke: colour("quiet"), grid: { stroke: colour("grid"), width: 1 }, ticks: { stroke: colour("grid") } };
    return new uPlot(
      {
        width: element.clientWidth,
        height,
        cursor: { sync: { key: "live" }, drag: { x: false, y: false } },
        legend: { show: false },
        // With room at both ends, or half of the first and the last bar would be cut off.
        scales: { x: { range: (_, low, high) => [low - 0.5, high + 0.5] }, y: { range: limits } },
        axes: [
          { ...axis, space: 90, incrs: SECONDS, values: (_, ticks) => ticks.map(clock) },
          { ...axis, size: 92, values: (_, ticks) => ticks.map(values) },
        ],
        series: [{}, { stroke: colour("bar"), width: 2, spanGaps: false, ...paths }],
      },
      [[], []],
      element,
    );
  }

  function begin() {
    document.getElementById("chart-figure").replaceChildren();
    charts = [
      chart("chart-figure", 220, tick, (_, low, high) => [0, high > 0 ? high * 1.1 : 1], {
        points: { size: 5, fill: colour("bar") },
      }),
      chart("chart-disturbed", 110, (share) => `${Math.round(share * 100)} %`, () => [0, 1], {
        stroke: colour("warn"),
        fill: colour("warn"),
        paths: uPlot.paths.bars({ size: [0.6, 24] }),
        points: { show: false },
      }),
    ];
  }

  function draw() {
    if (!window.uPlot || data[0].length === 0) {
      return;
    }
    if (!charts) {
      begin();
    }
    charts[0].setData([data[0], data[1]]);
    charts[1].setData([data[0], data[2]]);
  }

  function restart() {
    for (const one of charts || []) {
      one.destroy();
    }
    charts = null;
    draw();
  }

  function text(id, value) {
    const element = document.getElementById(id);
    if (element && element.textContent !== value) {
      element.textContent = value;
    }
  }

  function take(batch) {
    if (batch.unit !== unit) {
      // Another quantity: its samples do not belong on the same axis.
      data.forEach((column) => column.splice(0));
      unit = batch.unit;
    }
    for (const point of batch.points) {
      if (data[0].length && point[0] <= data[0].at(-1)) {
        continue;
      }
      point.forEach((value, column) => data[column].push(value));
    }
    data.forEach((column) => column.splice(0, column.length - SAMPLES_MOST));
    if (batch.points.length) {
      live.hidden = false;
      text("case", batch.trial ? `${batch.title}, trial ${batch.trial}` : batch.title);
      text("figure", human(batch.points.at(-1)[1], unit));
    }
    draw();
  }

  let fetched = 0;
  let planned = 0;

  function fetchAnew() {
    planned = 0;
    fetched = Date.now();
    htmx.trigger("#status", "anew");
  }

  function changed(news) {
    if (news.over) {
      source.close();
      location.reload();
      return;
    }
    const wait = Math.max(0, fetched + (news.soon ? SOON_MS : RARELY_MS) - Date.now());
    if (planned && news.soon) {
      clearTimeout(planned);
      planned = 0;
    }
    planned = planned || setTimeout(fetchAnew, wait);
  }

  const source = new EventSource(`/ui/jobs/${encodeURIComponent(live.dataset.job)}/live`);
  source.addEventListener("samples", (event) => take(JSON.parse(event.data)));
  source.addEventListener("trial", (event) => {
    const trial = JSON.parse(event.data);
    text("newest", trial.text);
    text("trials", `${trial.done} of ${trial.least} trials`);
    const bar = document.getElementById("progress");
    if (bar) {
      bar.max = Math.max(1, trial.least);
      bar.value = trial.done;
    }
  });
  source.addEventListener("changed", (event) => changed(JSON.parse(event.data)));
  source.addEventListener("open", () => document.getElementById("lost").hidden = true);
  source.addEventListener("error", () => document.getElementById("lost").hidden = false);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restart);
  addEventListener("resize", () => {
    for (const one of charts || []) {
      one.setSize({ width: one.root.parentElement.clientWidth, height: one.height });
    }
  });
})();
