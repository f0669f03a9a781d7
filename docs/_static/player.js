// The player of searches: a picture of the plan at hand, the best plan falling and the bound rising, step by step.
(function () {
  "use strict";
  const WIDTH = 480, LEFT = 34, RIGHT = 12, LANE = 30, ROW = 50, CHART = 120, LETTER = 6.6, SECONDS = 1.4;

  function svg(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function html(name, attributes, text) {
    const made = Object.assign(document.createElement(name), attributes);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function player(box) {
    const trail = JSON.parse(box.querySelector("script").textContent);
    const steps = trail.steps, last = steps.length - 1;
    const most = Math.max(...steps.map((step) => Math.max(step.value || 0, step.best || 0)));
    const least = 10 * Math.floor(Math.min(...steps.map((step) => step.bound || step.best || most)) / 10);
    const foot = trail.lanes.length * ROW, top = foot + 50, height = top + CHART + 34;
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img" });
    const said = html("p", { className: "said" });
    said.setAttribute("role", "status");
    const slider = html("input", { type: "range", min: 0, max: last, value: 0 });
    slider.setAttribute("aria-label", "step");
    let at = 0, timer = null;

    const time = (value) => LEFT + value / most * (WIDTH - LEFT - RIGHT);
    const column = (place) => LEFT + place / last * (WIDTH - LEFT - RIGHT);
    const level = (value) => top + CHART * (most - value) / (most - least);

    function lanes(step) {
      trail.lanes.forEach(function (name, lane) {
        picture.append(svg("text", { x: LEFT, y: lane * ROW + 13 }, name));
        picture.append(svg("rect", { class: "track", x: LEFT, y: lane * ROW + 17, width: WIDTH - LEFT - RIGHT, height: LANE }));
      });
      for (const [lane, start, end, moved, phase, label] of step.bars || []) {
        const width = time(end) - time(start), y = lane * ROW + 17, short = label.replace(phase + "/", "");
        const bar = svg("g", {});
        bar.append(svg("title", {}, `${label}: ${start} to ${end}` + (moved ? `, of which ${moved} move data` : "")));
        bar.append(svg("rect", { class: "bar " + phase, x: time(start), y: y, width: width, height: LANE }));
        if (moved) bar.append(svg("rect", { class: "moved", x: time(start), y: y, width: time(moved) - LEFT, height: LANE }));
        if (short.length * LETTER < width)
          bar.append(svg("text", { class: "on", x: time(start) + width / 2, y: y + 20, "text-anchor": "middle" }, short));
        picture.append(bar);
      }
      for (let mark = 0; mark <= most; mark += 10)
        picture.append(svg("text", { class: "mark", x: time(mark), y: foot + 14, "text-anchor": "middle" }, mark));
      picture.append(svg("text", { class: "mark", x: WIDTH - RIGHT, y: foot + 28, "text-anchor": "end" }, "time units"));
      limit("best", step.best);
      limit("bound", step.bound);
    }

    function limit(kind, value) {
      if (value) picture.append(svg("line", { class: kind, x1: time(value), x2: time(value), y1: 4, y2: foot + 2 }));
    }

    function line(kind, key) {
      // A run of its own for each searcher; a value holds until the next step.
      let path = "";
      steps.forEach(function (step, place) {
        if (place > at || !step[key]) return;
        const begins = !place || steps[place - 1].by !== step.by || !steps[place - 1][key];
        path += begins ? `M${column(place)} ${level(step[key])}` : `H${column(place)}V${level(step[key])}`;
      });
      picture.append(svg("path", { class: kind, d: path }));
      const now = steps[at][key];
      if (!now) return;
      picture.append(svg("circle", { class: kind, cx: column(at), cy: level(now), r: 4 }));
    }

    function chart() {
      for (let mark = least; mark <= most; mark += 10) {
        picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: level(mark), y2: level(mark) }));
        picture.append(svg("text", { class: "mark", x: LEFT - 6, y: level(mark) + 4, "text-anchor": "end" }, mark));
      }
      steps.forEach(function (step, place) {
        if (place && steps[place - 1].by === step.by) return;
        if (place) picture.append(svg("line", { class: "grid", x1: (column(place) + column(place - 1)) / 2, x2: (column(place) + column(place - 1)) / 2, y1: top - 6, y2: top + CHART }));
        picture.append(svg("text", { x: column(place), y: top + CHART + 18 }, step.by));
      });
      steps.forEach(function (step, place) {
        if (place <= at && step.value) picture.append(svg("circle", { class: "tried", cx: column(place), cy: level(step.value), r: 3 }));
      });
      line("best", "best");
      line("bound", "bound");
    }

    function show(place) {
      at = Math.max(0, Math.min(last, place));
      const step = steps[at];
      slider.value = at;
      picture.replaceChildren();
      lanes(step);
      chart();
      const known = `best plan ${step.best}` + (step.bound ? `, bound ${step.bound}` : ", no bound");
      said.textContent = `Step ${at + 1} of ${steps.length}. ${step.by}: ${step.words}. So far: ${known}.`;
      slider.setAttribute("aria-valuetext", said.textContent);
      picture.setAttribute("aria-label", `Timetable of the plan at hand, and the course of plan and bound. ${said.textContent}`);
      if (at === last) stop();
    }

    function stop() {
      clearInterval(timer);
      timer = null;
      play.textContent = "Play";
    }

    function button(text, action) {
      const made = html("button", { type: "button", onclick: action }, text);
      tools.append(made);
      return made;
    }

    const tools = html("div", { className: "tools" });
    const play = button("Play", function () {
      if (timer) return stop();
      if (at === last) show(0);
      play.textContent = "Pause";
      timer = setInterval(() => show(at + 1), SECONDS * 1000);
    });
    button("Back", () => { stop(); show(at - 1); });
    button("Next", () => { stop(); show(at + 1); });
    tools.append(slider);
    new Set(steps.map((step) => step.by)).forEach((by) => button(by, () => { stop(); show(steps.findIndex((step) => step.by === by)); }));
    slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });

    const legend = html("p", { className: "legend" });
    [["FP", "forward"], ["BP", "backward"], ["WU", "update of weights"], ["moved", "moving data"], ["best", "best plan"], ["bound", "bound: no plan ends before"]]
      .forEach(([kind, text]) => legend.append(html("span", { className: kind }, text)));
    box.append(tools, said, picture, legend);
    show(0);
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".player").forEach(player));
})();
