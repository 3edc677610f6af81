/** The bars of what each day cost, by uPlot. The table below the chart says the same in words. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { SpendReport } from "./api";
import { colour } from "./colour";
import { day, money, words } from "./words";

const DAY = 86_400;

/** Every day from the first to the last one: a day without cost is a gap that means something. */
function filled({ from, to, rows }: SpendReport): [number[], number[]] {
  const costs = new Map(rows.map(({ name, cost }) => [name, cost]));
  const [first, last] = [Date.parse(`${from}T00:00:00Z`) / 1000, Date.parse(`${to}T00:00:00Z`) / 1000];
  const days = Array.from({ length: Math.round((last - first) / DAY) + 1 }, (_, n) => first + n * DAY);
  return [days, days.map((at) => costs.get(new Date(at * 1000).toISOString().slice(0, 10)) ?? 0)];
}

export function Days({ report, look }: { report: SpendReport; look: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [days, costs] = filled(report);
  const key = `${look} ${report.from} ${report.to} ${costs.join()}`;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const axis = { stroke: colour("--dim"), ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: 180,
        legend: { show: false },
        cursor: { show: false },
        // Days are counted in the zone of the gateway, and their names are theirs: no zone of the browser may move them.
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        scales: { x: { range: (_, min, max) => [min - DAY / 2, max + DAY / 2] }, y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, grid: { show: false }, size: 26, incrs: [1, 2, 5, 7, 14].map((n) => n * DAY), values: (_, at) => at.map((one) => day(new Date(one * 1000).toISOString().slice(0, 10))), space: 60 },
          { ...axis, grid: { stroke: colour("--line"), width: 1 }, size: 64, values: (_, all) => all.map((one) => money(one, report.currency)) },
        ],
        series: [{}, { stroke: colour("--accent"), fill: colour("--accent-bar"), width: 0, paths: uPlot.paths.bars!({ size: [0.7, 40] }), points: { show: false } }],
      },
      [days, costs],
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 180 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [key]);
  const dearest = costs.indexOf(Math.max(...costs));
  const name = day(new Date((days[dearest] ?? 0) * 1000).toISOString().slice(0, 10));
  return <div ref={box} class="chart" role="img" aria-label={`${words.costByDay}. ${words.dearestDay(name, money(costs[dearest] ?? 0, report.currency))}`} />;
}
