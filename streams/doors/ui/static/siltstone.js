// Polls what is looked at, draws charts, remembers the theme. No page needs it to be read.
"use strict";
(() => {
  const root = document.documentElement;
  const media = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (media.matches ? "dark" : "light")) === "dark";
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const say = (text) => {
    const place = document.getElementById("failure");
    if (place && place.textContent !== text) place.textContent = text;
  };

  // Theme

  const toggles = document.querySelectorAll("button.theme");
  const showTheme = () => {
    toggles.forEach((toggle) => toggle.setAttribute("aria-pressed", String(isDark())));
    charts.forEach((chart) => chart.draw());
  };
  toggles.forEach((toggle) => {
    toggle.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      localStorage.setItem("siltstone-theme", root.dataset.theme);
      showTheme();
    });
  });
  media.addEventListener("change", () => showTheme());

  // Polling: only while the page is visible, the part is on the screen, and polling is not paused

  const pause = document.getElementById("pause");
  let paused = false;
  if (pause) {
    pause.hidden = false;
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.setAttribute("aria-pressed", String(paused));
      pause.textContent = paused ? "Resume" : "Pause";
    });
  }
  const onScreen = (element) => {
    const box = element.getBoundingClientRect();
    return box.bottom > 0 && box.top < innerHeight;
  };
  const due = new WeakMap();
  const isDue = (element, now) => {
    const seconds = Number(element.dataset.poll);
    if (!due.has(element)) due.set(element, now + seconds * 1000);
    if (now < due.get(element)) return false;
    due.set(element, now + seconds * 1000);
    return true;
  };
  setInterval(() => {
    if (paused || document.visibilityState !== "visible") return;
    const now = performance.now();
    document.querySelectorAll("[data-poll]").forEach((element) => {
      if (!onScreen(element) || !isDue(element, now)) return;
      if (element.dataset.charts) refreshCharts(element.dataset.charts);
      else if (!element.contains(document.activeElement)) htmx.trigger(element, "poll");
    });
  }, 500);
  addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) say("");
  });
  addEventListener("htmx:sendError", () => say("The worker does not answer. The page may be out of date."));
  addEventListener("htmx:responseError", (event) => {
    const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
    say(page.body.textContent.trim() || `The worker answers ${event.detail.xhr.status}.`);
  });

  // Forms that ask before they are sent

  addEventListener("submit", (event) => {
    const question = event.target.dataset && event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
  addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });

  // Charts

  const pad = (number) => String(number).padStart(2, "0");
  const clock = (seconds) => {
    const at = new Date(seconds * 1000);
    return `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
  };
  const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
  const monthDay = (seconds) => new Date(seconds * 1000).toISOString().slice(5, 10);
  const spelled = { time: clock, days: day, scores: (from) => `${from}–${from + 10}` };
  const onAxis = { time: (seconds) => clock(seconds).slice(0, 5), days: monthDay, scores: String };
  const LINES = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6", "--line-7", "--line-8"];
  const HEIGHT = 180;

  class Chart {
    constructor(place) {
      this.place = place;
      this.table = place.parentElement.querySelector("table");
      this.details = place.parentElement.querySelector("details");
      this.is = JSON.parse(place.dataset.chart);
      this.draw();
      this.details.addEventListener("toggle", () => this.tell());
      new ResizeObserver(() => this.fit()).observe(place);
    }

    options() {
      const { kind, labels, unit, bars, most } = this.is;
      const ink = colour("--muted");
      const markers = { width: 0, fill: (plot, number) => plot.series[number].stroke() };
      const font = '12px system-ui, sans-serif';
      const axis = { stroke: ink, font, grid: { stroke: colour("--rule"), width: 1 }, ticks: { stroke: colour("--rule"), size: 4 } };
      const series = labels.map((label, number) => {
        const line = colour((this.is.colours || LINES)[number] || LINES[number % LINES.length]);
        const one = { label, stroke: line, width: bars ? 0 : 2, points: { show: false } };
        if (bars) {
          one.fill = line;
          one.paths = uPlot.paths.bars({ size: [0.82, 64], align: kind === "scores" ? 1 : 0 });
        }
        return one;
      });
      return {
        width: Math.max(120, this.place.clientWidth),
        height: HEIGHT,
        padding: [8, 18, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { size: 6 } },
        legend: { live: true, markers },
        scales: {
          x: { time: false, range: kind === "scores" ? [0, 100] : undefined },
          y: { range: (_, low, high) => [0, most || Math.max(1, (high || 0) * 1.1)] },
        },
        axes: [
          { ...axis, size: 32, values: (_, values) => values.map(onAxis[kind]), space: 60 },
          { ...axis, size: 52, values: (_, values) => values.map((value) => value.toLocaleString("en")) },
        ],
        series: [{ label: "", value: (_, at) => (at == null ? "" : spelled[kind](at)) }, ...series.map((one) => ({ ...one, value: (_, value) => (value == null ? "" : value.toLocaleString("en")) }))],
      };
    }

    draw() {
      if (this.plot) this.plot.destroy();
      this.place.classList.toggle("empty", this.is.data[0].length < 2 && this.is.kind !== "scores");
      this.plot = new uPlot(this.options(), this.is.data, this.place);
      this.tell();
    }

    fit() {
      const width = Math.max(120, this.place.clientWidth);
      if (this.plot && this.plot.width !== width) this.plot.setSize({ width, height: HEIGHT });
    }

    renew(is) {
      const same = String(is.labels) === String(this.is.labels);
      this.is = is;
      if (!same || is.data[0].length < 2) this.draw();
      else {
        this.place.classList.remove("empty");
        this.plot.setData(this.is.data);
        this.tell();
      }
    }

    // The same as a table, for readers who cannot see the picture; the newest rows first.
    tell() {
      if (!this.details.open) return;
      const [xs, ...lines] = this.is.data;
      const row = (cells, kind) => {
        const tr = document.createElement("tr");
        cells.forEach((text, place) => {
          const cell = document.createElement(kind || (place ? "td" : "th"));
          if (cell.tagName === "TH") cell.scope = kind ? "col" : "row";
          cell.textContent = text;
          tr.append(cell);
        });
        return tr;
      };
      const shown = xs.map((_, place) => place);
      if (this.is.kind === "time") shown.reverse();
      this.table.tHead.replaceChildren(row([this.is.kind === "scores" ? "score" : "when (UTC)", ...this.is.labels], "th"));
      this.table.tBodies[0].replaceChildren(
        ...shown.slice(0, 60).map((place) => row([spelled[this.is.kind](xs[place]), ...lines.map((line) => (line[place] == null ? "–" : line[place].toLocaleString("en")))])),
      );
    }
  }

  const charts = new Map();
  const findCharts = () => {
    document.querySelectorAll("[data-chart]").forEach((place) => {
      if (!charts.has(place)) charts.set(place, new Chart(place));
    });
    charts.forEach((_, place) => {
      if (!place.isConnected) charts.delete(place);
    });
  };
  const refreshCharts = async (address) => {
    try {
      const answer = await fetch(address, { headers: { accept: "application/json" } });
      if (!answer.ok) return;
      const fresh = await answer.json();
      charts.forEach((chart, place) => {
        if (place.dataset.name in fresh) chart.renew(fresh[place.dataset.name]);
      });
    } catch {
      say("The worker does not answer. The page may be out of date.");
    }
  };
  addEventListener("htmx:afterSettle", findCharts);
  findCharts();
  showTheme();
})();
