// The chart of the board: asked for anew when something moved, at most every few seconds.

const OFTEN = 4_000; // milliseconds
const SELDOM = 30_000;
const HEIGHT = 240;
const STEPS = [1, 2, 5].flatMap((n) => [n, n * 10, n * 100, n * 1e3, n * 1e4, n * 1e5, n * 1e6]).sort((a, b) => a - b);
const box = document.getElementById("pace");
const dark = matchMedia("(prefers-color-scheme: dark)");
let plot = null;
let asked = 0;
let waiting = null;

// A colour as the page has it now, whatever the theme.
function colour(name) {
  const probe = document.querySelector(`.legend .${name}`);
  return getComputedStyle(probe, "::before").backgroundColor;
}

function axis(more) {
  const style = getComputedStyle(box);
  return {
    stroke: style.color,
    font: "12px system-ui, sans-serif",
    grid: { stroke: style.borderTopColor, width: 1 },
    ticks: { show: false },
    ...more,
  };
}

// Where nobody dies there is no line of the dead either.
function unlessQuiet(n, at, all) {
  return n || all[at - 1] || all[at + 1] ? n : null;
}

function draw(data) {
  const series = ["waiting", "done", "dead"];
  const language = document.documentElement.lang;
  const time = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const number = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });
  plot?.destroy();
  plot = new uPlot(
    {
      width: box.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      scales: { y: { range: (_, __, most) => [0, Math.max(most * 1.1, 4)] } },
      axes: [
        axis({ values: (_, at) => at.map((each) => time.format(each * 1000)), space: 70, size: 30 }),
        axis({ values: (_, n) => n.map((each) => number.format(each)), incrs: STEPS, size: 52 }),
      ],
      series: [
        {},
        ...series.map((name) => ({
          stroke: colour(name),
          fill: name === "done" ? colour(name).replace("rgb(", "rgba(").replace(")", ", .12)") : undefined,
          width: 2,
          points: { show: false },
        })),
      ],
    },
    [data.at, data.waiting, data.done, data.dead.map(unlessQuiet)],
    box,
  );
}

async function ask() {
  asked = Date.now();
  waiting = null;
  try {
    const answer = await fetch(`/pace?last=${box.dataset.last}`);
    if (answer.ok) draw(await answer.json());
  } catch {
    // No signal: the page says so, and asks again when there is one.
  }
}

function soon() {
  waiting ??= setTimeout(ask, Math.max(OFTEN - (Date.now() - asked), 0));
}

document.addEventListener("moved", soon);
document.addEventListener("htmx:sse:after:connection", soon);
dark.addEventListener("change", soon);
addEventListener("resize", soon);
setInterval(soon, SELDOM);
ask();
